"""The documentation site: what is written from the code, and how."""

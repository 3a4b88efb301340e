"""The call path is tested with the reference backend: nothing is compiled."""

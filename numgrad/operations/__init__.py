"""The operations, one module a field: ``lazy_operations`` fills the table ``OPS``."""

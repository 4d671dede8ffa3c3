"""What lab.toml may hold: its tables as pydantic models, by the parts of the file."""

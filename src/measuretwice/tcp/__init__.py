"""The field's theory, pure: models, headers, windows."""

"""The database: engine, tables, migrations, and one module for each kind of row."""

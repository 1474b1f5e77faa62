-- Finds pull secrets by the key that encrypts them, for its rotation.
CREATE INDEX resources_by_key ON resources (substr(sealed, 1, instr(sealed, '.') - 1), id) WHERE sealed IS NOT NULL;

-- The row that the readiness probe writes.
CREATE TABLE write_probe (id INTEGER PRIMARY KEY CHECK (id = 1), time INTEGER NOT NULL, filler TEXT NOT NULL) STRICT;

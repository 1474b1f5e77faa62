-- Finds pull secrets by the key that encrypts them, for its rotation.
CREATE INDEX resources_by_key ON resources (split_part(sealed, '.', 1), id) WHERE sealed IS NOT NULL;

-- The row that the readiness probe writes.
CREATE TABLE write_probe (id BIGINT PRIMARY KEY CHECK (id = 1), time BIGINT NOT NULL, filler TEXT NOT NULL);

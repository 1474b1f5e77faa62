-- The epoch of the change stream: random, kept in the database and replaced after a restore, so that positions of before the
-- restore are not mistaken for positions of after it. `restoring` is 1 while generations are being raised after a restore.
ALTER TABLE change_counter ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
ALTER TABLE change_counter ADD COLUMN restoring INTEGER NOT NULL DEFAULT 0;
UPDATE change_counter SET epoch = lower(hex(randomblob(4)));

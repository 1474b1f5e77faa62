-- The number of resources of each kind and tenancy, so that a list need not count them.
CREATE TABLE resource_counts (
  kind    TEXT NOT NULL,
  tenancy TEXT NOT NULL,
  count   INTEGER NOT NULL,
  PRIMARY KEY (kind, tenancy)
) STRICT;
INSERT INTO resource_counts (kind, tenancy, count) SELECT kind, tenancy, COUNT(*) FROM resources GROUP BY kind, tenancy;

-- Walks through a kind in the order of ids.
CREATE INDEX resources_by_id ON resources (kind, id);

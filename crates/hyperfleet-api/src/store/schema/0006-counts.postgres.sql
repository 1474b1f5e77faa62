-- The number of resources of each kind and tenancy, so that a list need not count them.
CREATE TABLE resource_counts (
  kind    TEXT COLLATE "C" NOT NULL,
  tenancy TEXT COLLATE "C" NOT NULL,
  count   BIGINT NOT NULL,
  PRIMARY KEY (kind, tenancy)
);
INSERT INTO resource_counts (kind, tenancy, count) SELECT kind, tenancy, COUNT(*) FROM resources GROUP BY kind, tenancy;

-- Room in each page for the next version of a row, so that a report does not touch the indexes.
ALTER TABLE resources SET (fillfactor = 70);
ALTER TABLE resource_conditions SET (fillfactor = 70);

-- Walks through a kind in the order of ids.
CREATE INDEX resources_by_id ON resources (kind, id);

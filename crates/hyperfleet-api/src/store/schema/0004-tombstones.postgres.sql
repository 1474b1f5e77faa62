-- Resources that were removed by force, with the copies that their adapters had reported, until these are swept.
CREATE TABLE tombstones (
  id           TEXT PRIMARY KEY,
  resource_id  TEXT NOT NULL,
  kind         TEXT NOT NULL,
  name         TEXT NOT NULL,
  incarnation  BIGINT NOT NULL,
  generation   BIGINT NOT NULL,
  tenancy      TEXT NOT NULL,
  removed_time BIGINT NOT NULL,
  removed_by   TEXT NOT NULL,
  reason       TEXT NOT NULL,
  copies       TEXT NOT NULL
);
CREATE INDEX tombstones_by_kind ON tombstones (kind, id);
CREATE INDEX tombstones_by_time ON tombstones (removed_time);

-- Indexes that writes maintain and no statement needs: the time of changes, which are in the order of their versions; the owner of resources
-- without one.
DROP INDEX changes_by_time;
DROP INDEX resources_by_owner;
CREATE INDEX resources_by_owner ON resources (owner_id, kind, created_time, id) WHERE owner_id IS NOT NULL;

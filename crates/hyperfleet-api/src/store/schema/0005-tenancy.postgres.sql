-- Lists of one tenancy, and the tenancy of changes. Stored changes do not have it, so that every change stream begins anew.
CREATE INDEX resources_by_tenancy ON resources (kind, tenancy, created_time, id);
DELETE FROM changes;
ALTER TABLE changes ADD COLUMN tenancy TEXT COLLATE "C" NOT NULL DEFAULT '{}';

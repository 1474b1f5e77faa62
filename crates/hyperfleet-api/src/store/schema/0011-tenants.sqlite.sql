-- Resources without an owner are found by the indexes of all: their entries in those by tenancy cost each creation in a fleet without
-- tenants one write, and one for each label.
DROP INDEX resources_by_tenancy;
CREATE INDEX resources_by_tenancy ON resources (kind, tenancy, created_time, id) WHERE tenancy <> '{}';
DROP INDEX resource_labels_by_tenancy;
CREATE INDEX resource_labels_by_tenancy ON resource_labels (key, value, kind, tenancy, created_time, resource_id) WHERE tenancy <> '{}';

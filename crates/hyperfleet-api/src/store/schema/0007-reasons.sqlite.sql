-- Reasons of conditions, for searches.
ALTER TABLE resource_conditions ADD COLUMN reason TEXT;
UPDATE resource_conditions SET reason = (
  SELECT json_extract(c.value, '$.reason') FROM resources r, json_each(r.state, '$.conditions') c
  WHERE r.id = resource_conditions.resource_id AND json_extract(c.value, '$.type') = resource_conditions.type
);
CREATE INDEX resource_conditions_by_reason ON resource_conditions (type, reason, resource_id);

-- Labels, conditions and transitions are written only while their resource is locked or new. A foreign key would look for it again for each
-- row, a fifth of the time of a creation. They are still removed with it, also by a server of an earlier version.
ALTER TABLE resource_labels DROP CONSTRAINT resource_labels_resource_id_fkey;
ALTER TABLE resource_conditions DROP CONSTRAINT resource_conditions_resource_id_fkey;
ALTER TABLE transitions DROP CONSTRAINT transitions_resource_id_fkey;

CREATE FUNCTION remove_rows_of_resources() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  DELETE FROM resource_labels m USING removed r WHERE m.resource_id = r.id;
  DELETE FROM resource_conditions m USING removed r WHERE m.resource_id = r.id;
  DELETE FROM transitions m USING removed r WHERE m.resource_id = r.id;
  RETURN NULL;
END $$;
CREATE TRIGGER resources_removed AFTER DELETE ON resources REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION remove_rows_of_resources();

package main

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"

	"cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

func crc32c(data []byte) *int64 {
	sum := int64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return &sum
}

// versions adds two and reads them back with their checksums.
func (s *story) versions(ctx context.Context) (first, second *secretmanagerpb.SecretVersion) {
	add := func(data []byte, checksum *int64) (*secretmanagerpb.SecretVersion, error) {
		payload := &secretmanagerpb.SecretPayload{Data: data, DataCrc32C: checksum}
		return s.AddSecretVersion(ctx, &secretmanagerpb.AddSecretVersionRequest{Parent: s.secret.Name, Payload: payload})
	}
	hello := []byte("hello")
	first = check.Must(add(hello, crc32c(hello)))
	check.Equal(first.Name, s.secret.Name+"/versions/1")
	check.That(first.State == secretmanagerpb.SecretVersion_ENABLED && first.ClientSpecifiedPayloadChecksum, "%v", first)
	check.That(first.GetReplicationStatus().GetAutomatic() != nil, "%v", first)
	second = check.Must(add([]byte("\xff\x00world"), nil))
	check.That(!second.ClientSpecifiedPayloadChecksum, "%v", second)

	accessed := s.read(ctx, first.Name).Payload
	check.Equal(accessed.Data, hello)
	check.Equal(accessed.GetDataCrc32C(), *crc32c(hello))
	latest := s.read(ctx, parent+"/secrets/life/versions/latest")
	check.That(latest.Name == second.Name && string(latest.Payload.Data) == "\xff\x00world", "%v", latest.Name)

	wrong := int64(1)
	_, err := add(hello, &wrong)
	s.refused(err, codes.InvalidArgument, "checksum")
	_, err = add(bytes.Repeat([]byte("x"), 65537), nil)
	s.refused(err, codes.InvalidArgument, "larger than the limit")
	third := s.secret.Name + "/versions/3"
	_, err = s.AccessSecretVersion(ctx, &secretmanagerpb.AccessSecretVersionRequest{Name: third})
	s.refused(err, codes.NotFound, "Secret Version ["+third+"] not found.")
	return first, second
}

// states disables, enables and destroys the first version.
func (s *story) states(ctx context.Context, first, second *secretmanagerpb.SecretVersion) {
	inaccessible := func(state string) {
		_, err := s.AccessSecretVersion(ctx, &secretmanagerpb.AccessSecretVersionRequest{Name: first.Name})
		s.refused(err, codes.FailedPrecondition, "is in "+state+" state.")
	}
	disable := &secretmanagerpb.DisableSecretVersionRequest{Name: first.Name, Etag: first.Etag}
	disabled := check.Must(s.DisableSecretVersion(ctx, disable))
	check.That(disabled.State == secretmanagerpb.SecretVersion_DISABLED && disabled.Etag != first.Etag, "%v", disabled)
	inaccessible("DISABLED")
	stale := &secretmanagerpb.EnableSecretVersionRequest{Name: first.Name, Etag: first.Etag}
	_, err := s.EnableSecretVersion(ctx, stale)
	s.refused(err, codes.FailedPrecondition, "etag")
	enable := &secretmanagerpb.EnableSecretVersionRequest{Name: first.Name}
	check.Equal(check.Must(s.EnableSecretVersion(ctx, enable)).State, secretmanagerpb.SecretVersion_ENABLED)

	destroy := &secretmanagerpb.DestroySecretVersionRequest{Name: first.Name}
	destroyed := check.Must(s.DestroySecretVersion(ctx, destroy))
	check.That(destroyed.State == secretmanagerpb.SecretVersion_DESTROYED && destroyed.DestroyTime != nil, "%v", destroyed)
	inaccessible("DESTROYED")
	found := check.Must(s.GetSecretVersion(ctx, &secretmanagerpb.GetSecretVersionRequest{Name: first.Name}))
	check.Equal(found.State, secretmanagerpb.SecretVersion_DESTROYED)

	check.Equal(s.listed(ctx, ""), []string{second.Name, first.Name})
	check.Equal(s.listed(ctx, "state:ENABLED"), []string{second.Name})
}

// listed returns the names of the versions that pass the filter, which come one a page.
func (s *story) listed(ctx context.Context, filter string) (names []string) {
	request := &secretmanagerpb.ListSecretVersionsRequest{Parent: parent + "/secrets/life", PageSize: 1, Filter: filter}
	versions := s.ListSecretVersions(ctx, request)
	for {
		version, err := versions.Next()
		if errors.Is(err, iterator.Done) {
			return names
		}
		check.OK(err)
		names = append(names, version.Name)
	}
}

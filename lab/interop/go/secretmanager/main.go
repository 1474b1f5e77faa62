// Command secretmanager walks secrets through their whole life with Google's own Go client.
//
//	usage: secretmanager ADDRESS grpc|rest
//
// The server must deny secretmanager.secrets.setIamPolicy, answer the first deleteSecret with UNAVAILABLE (retry after
// 3 s), and drop the connection of the second getVersion.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	secretmanager "cloud.google.com/go/secretmanager/apiv1"
	"cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/googleapis/gax-go/v2/apierror"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

const parent = "projects/fleet-dev"

// httpStatus is all that a REST client knows about an error besides its message and details.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:    400,
	codes.NotFound:           404,
	codes.AlreadyExists:      409,
	codes.PermissionDenied:   403,
	codes.FailedPrecondition: 400,
	codes.Unimplemented:      501,
	codes.Unavailable:        503,
}

// story is one run: a client, its transport, and the secret that most of it is about.
type story struct {
	*secretmanager.Client
	rest   bool
	secret *secretmanagerpb.Secret
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: secretmanager ADDRESS grpc|rest")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s := &story{Client: connect(ctx, os.Args[1], os.Args[2]), rest: os.Args[2] == "rest"}
	s.create(ctx)
	first, second := s.versions(ctx)
	s.states(ctx, first, second)
	s.updates(ctx)
	s.lists(ctx)
	s.permissions(ctx)
	s.cut(ctx)
	s.end(ctx)
	s.regional(ctx)
	check.OK(s.Close())
}

func connect(ctx context.Context, address, transport string) *secretmanager.Client {
	if transport == "rest" {
		endpoint := option.WithEndpoint("http://" + address)
		return check.Must(secretmanager.NewRESTClient(ctx, endpoint, option.WithoutAuthentication()))
	}
	plain := option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))
	return check.Must(secretmanager.NewClient(ctx, option.WithEndpoint(address), option.WithoutAuthentication(), plain))
}

// refused checks that a call has failed with this code and message.
func (s *story) refused(err error, code codes.Code, text string) *apierror.APIError {
	var failure *apierror.APIError
	check.That(errors.As(err, &failure), "%v was expected, not %v", code, err)
	if s.rest {
		check.Equal(failure.HTTPCode(), httpStatus[code])
	} else {
		check.Equal(failure.GRPCStatus().Code(), code)
	}
	check.That(strings.Contains(failure.Error(), text), "%q is missing in: %v", text, failure)
	return failure
}

func automatic() *secretmanagerpb.Replication {
	return &secretmanagerpb.Replication{
		Replication: &secretmanagerpb.Replication_Automatic_{Automatic: &secretmanagerpb.Replication_Automatic{}},
	}
}

func (s *story) newSecret(ctx context.Context, id string, secret *secretmanagerpb.Secret) (*secretmanagerpb.Secret, error) {
	secret.Replication = automatic()
	request := &secretmanagerpb.CreateSecretRequest{Parent: parent, SecretId: id, Secret: secret}
	return s.CreateSecret(ctx, request)
}

// read returns the content of a version that can be accessed.
func (s *story) read(ctx context.Context, name string) *secretmanagerpb.AccessSecretVersionResponse {
	return check.Must(s.AccessSecretVersion(ctx, &secretmanagerpb.AccessSecretVersionRequest{Name: name}))
}

func (s *story) create(ctx context.Context) {
	_, err := s.GetSecret(ctx, &secretmanagerpb.GetSecretRequest{Name: parent + "/secrets/life"})
	s.refused(err, codes.NotFound, "not found")
	created := check.Must(s.newSecret(ctx, "life", &secretmanagerpb.Secret{
		Labels:     map[string]string{"managed-by": "hyperfleet"},
		Expiration: &secretmanagerpb.Secret_Ttl{Ttl: durationpb.New(2 * time.Hour)},
	}))
	number := strings.Split(created.Name, "/")[1]
	check.That(strings.Trim(number, "0123456789") == "" && created.Etag != "", "%v", created)
	check.Equal(created.GetExpireTime().AsTime().Sub(created.CreateTime.AsTime()), 2*time.Hour)
	_, err = s.newSecret(ctx, "life", &secretmanagerpb.Secret{})
	s.refused(err, codes.AlreadyExists, "already exists")
	_, err = s.newSecret(ctx, "a.b", &secretmanagerpb.Secret{})
	s.refused(err, codes.InvalidArgument, "Secret ID [a.b]")
	s.secret = created
}

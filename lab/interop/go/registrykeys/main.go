// Command registrykeys tells which keys of a Docker config JSON a kubelet and CRI-O use for an image, by their own code.
//
// It reads cases, one JSON object a line, and prints an answer to each. The user of a key's credential is the key's index.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/types"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/util/parsers"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

// question is a case: the keys in `auths`, and an image of a Pod.
type question struct {
	Keys  []string `json:"keys"`
	Image string   `json:"image"`
}

// answer has indexes of keys: those that the kubelet tries, in order, and the one that CRI-O uses, or -1.
type answer struct {
	Kubelet []int `json:"kubelet"`
	CRIO    int   `json:"crio"`
}

func main() {
	folder := check.Must(os.MkdirTemp("", "registrykeys"))
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "config.json")
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q question
		check.OK(json.Unmarshal(lines.Bytes(), &q))
		document := q.document()
		check.OK(os.WriteFile(file, document, 0o600))
		check.OK(out.Encode(answer{kubelet(document, q.Image), crio(file, q.Image)}))
	}
	check.OK(lines.Err())
}

func (q question) document() []byte {
	auths := map[string]any{}
	for index, key := range q.Keys {
		auths[key] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(index) + ":p"))}
	}
	return check.Must(json.Marshal(map[string]any{"auths": auths}))
}

// kubelet asks its keyring, as its image manager does.
func kubelet(document []byte, image string) []int {
	var file credentialprovider.DockerConfigJSON
	check.OK(json.Unmarshal(document, &file))
	keyring := &credentialprovider.BasicDockerKeyring{}
	keyring.Add(nil, file.Auths)
	repository, _, _, err := parsers.ParseImageName(image)
	check.OK(err)
	found, _ := keyring.Lookup(repository)
	indexes := []int{}
	for _, credential := range found {
		indexes = append(indexes, check.Must(strconv.Atoi(credential.Username)))
	}
	return indexes
}

// crio asks containers/image, as CRI-O does with its global auth file.
func crio(file, image string) int {
	name := check.Must(reference.ParseNormalizedNamed(image))
	credential := check.Must(config.GetCredentialsForRef(&types.SystemContext{AuthFilePath: file}, name))
	if credential.Username == "" {
		return -1
	}
	return check.Must(strconv.Atoi(credential.Username))
}

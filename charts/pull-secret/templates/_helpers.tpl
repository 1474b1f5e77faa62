{{- define "pull-secret.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/part-of: hyperfleet-pull-secret
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "pull-secret.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* A ServiceAccount's annotations: Workload Identity's, and those that are given. */}}
{{- define "pull-secret.annotations" -}}
{{- $given := .annotations | default dict -}}
{{- if .gcpServiceAccount -}}
{{- $given = merge (dict "iam.gke.io/gcp-service-account" .gcpServiceAccount) $given -}}
{{- end -}}
{{- with $given }}
annotations: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end }}

{{- define "pull-secret.service-account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .namespace | default .root.Release.Namespace }}
  labels: {{- include "pull-secret.labels" . | nindent 4 }}
  {{- include "pull-secret.annotations" .account | nindent 2 }}
{{- end }}

{{/* What the Pods of all components have in common; `name` selects the replicas to spread. */}}
{{- define "pull-secret.pod" -}}
{{- with .root.Values -}}
securityContext: {{- toYaml .podSecurityContext | nindent 2 }}
{{- with .imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and .topologySpread $.spread }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {app.kubernetes.io/name: {{ $.name }}}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "pull-secret.container-security" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "pull-secret.server" -}}
ports:
  {{- range .ports }}
  - {name: {{ .name }}, containerPort: {{ .port }}}
  {{- end }}
  - {name: health, containerPort: 8080}
  - {name: metrics, containerPort: 9090}
livenessProbe:
  httpGet: {path: /healthz, port: health}
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: {{ .period }}
{{- end }}

{{- define "pull-secret.api-url" -}}
{{- if .Values.api.enabled -}}
https://hyperfleet-api.{{ .Release.Namespace }}.svc:8000
{{- else -}}
{{ required "api.url: needed where api.enabled is false: https://HOST:PORT" .Values.api.url }}
{{- end -}}
{{- end }}

{{/* The Secret with the API's authority; empty where a ConfigMap has it. */}}
{{- define "pull-secret.ca-secret" -}}
{{- with .Values -}}
{{ .tls.caSecret | default (ternary .tls.secretName "" (and .api.enabled .tls.certManager.enabled)) }}
{{- end -}}
{{- end }}

{{/* The key of the API's authority, in that Secret or in the ConfigMap. */}}
{{- define "pull-secret.ca-key" -}}
{{- with .Values -}}
{{- if and .api.enabled .tls.certManager.enabled (not .tls.caSecret) (ne .tls.caKey "ca.crt") -}}
{{- fail "tls.caKey: cert-manager's Secret has the authority as ca.crt; leave the key, or name a Secret of yours as tls.caSecret" -}}
{{- end -}}
{{ .tls.caKey }}
{{- end -}}
{{- end }}

{{/* The volume by which a client of the API identifies itself, and knows the API. */}}
{{- define "pull-secret.api-volume" -}}
{{- $items := printf "items: [{key: %s, path: ca.crt}]" (include "pull-secret.ca-key" .) -}}
name: token
projected:
  sources:
    - serviceAccountToken: {path: token, audience: hyperfleet-api, expirationSeconds: 3600}
    {{- with include "pull-secret.ca-secret" . }}
    - secret: {name: {{ . }}, {{ $items }}}
    {{- else }}
    - configMap: {name: {{ .Values.tls.caConfigMap }}, {{ $items }}}
    {{- end }}
{{- end }}

{{/* The variable with the address of a component's database, in a list of YAML. */}}
{{- define "pull-secret.database-variable" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .databaseSecret.name }}, key: {{ .databaseSecret.key }}}
{{- end }}

{{/* The volume with the authority of a component's database, as a list of YAML; empty without one. */}}
{{- define "pull-secret.database-volume" -}}
{{- if .databaseCaSecret -}}
- name: database
  secret: {secretName: {{ .databaseCaSecret }}, items: [{key: {{ .databaseCaKey }}, path: ca.crt}]}
{{- else if .databaseCaConfigMap -}}
- name: database
  configMap: {name: {{ .databaseCaConfigMap }}, items: [{key: {{ .databaseCaKey }}, path: ca.crt}]}
{{- end -}}
{{- end }}

{{/* A configuration with the further settings of its component, which may not replace what the chart depends on. */}}
{{- define "pull-secret.config" -}}
{{- mergeOverwrite (deepCopy .further) (.own | fromYaml) | toYaml -}}
{{- end }}

{{- define "pull-secret.service-metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "pull-secret.labels" . | nindent 2 }}
  {{- with .component.service.labels }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with .component.service.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "pull-secret.metrics-service" -}}
apiVersion: v1
kind: Service
metadata: {{- include "pull-secret.service-metadata" . | nindent 2 }}
spec:
  clusterIP: None
  selector: {app.kubernetes.io/name: {{ .name }}}
  ports:
    - {name: metrics, port: 9090, targetPort: metrics}
{{- end }}

{{/* The disruption budget and the autoscaler of a component. */}}
{{- define "pull-secret.scaling" -}}
{{- $scaling := .component.autoscaling | default dict }}
{{- $least := ternary $scaling.minReplicas .component.replicas ($scaling.enabled | default false) }}
{{- if and .root.Values.podDisruptionBudgets (gt (int $least) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "pull-secret.labels" . | nindent 4 }}
spec:
  minAvailable: 1
  # Pods that are not ready, as their database or registry is away, do not keep a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {app.kubernetes.io/name: {{ .name }}}
{{- end }}
{{- if $scaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "pull-secret.labels" . | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ .name }}}
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ $scaling.targetCPUUtilizationPercentage }}}
{{- end }}
{{- end }}

{{/* The variables of a container: `own`, a list of YAML, and what is `given` in the value `of`, which may not name one again. */}}
{{- define "pull-secret.variables" -}}
{{- $names := list -}}
{{- range .own | fromYamlArray }}{{ $names = append $names .name }}{{ end -}}
{{- range .given | default list -}}
{{- if has .name $names }}{{ fail (printf "%s: the variable %s is there already, and cannot be replaced" $.of .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- .own | trim -}}
{{- with .given }}
{{ toYaml . }}
{{- end -}}
{{- end }}

{{/* OpenTelemetry's variables, as a list of YAML; empty without an endpoint. */}}
{{- define "pull-secret.tracing-variables" -}}
{{- with .Values.tracing -}}
{{- if .endpoint -}}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .endpoint | quote }}}
- {name: OTEL_TRACES_SAMPLER, value: {{ .sampler }}}
- {name: OTEL_TRACES_SAMPLER_ARG, value: {{ .samplerArg | quote }}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The egress to the collector of traces, if there is one. */}}
{{- define "pull-secret.to-collector" -}}
{{- with .Values.tracing.endpoint -}}
{{- $url := urlParse . -}}
- ports: [{port: {{ (splitList ":" $url.host | rest | first) | default (ternary 443 80 (eq $url.scheme "https")) }}}]
{{- end -}}
{{- end }}

{{- define "pull-secret.adapter-spec" -}}
adapterType: pullsecret
hyperfleetAPI:
  url: {{ include "pull-secret.api-url" . }}
  caFile: /var/run/secrets/hyperfleet/ca.crt
  tokenPath: /var/run/secrets/hyperfleet/token
broker:
  type: {{ .Values.broker.type }}
  topic: {{ .Values.broker.topic }}
  subscription: {{ .Values.adapter.subscription }}
  {{- if eq .Values.broker.type "googlepubsub" }}
  projectId: {{ required "broker.googleProject: needed where broker.type is googlepubsub" .Values.broker.googleProject }}
  {{- end }}
kubernetes:
  lease: pullsecret-adapter
  {{- if .Values.adapter.grantAccess }}
  serviceAccount: {{ .Release.Namespace }}/pullsecret-adapter
  {{- end }}
jobTemplate:
  image: {{ include "pull-secret.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  resources: {{- toYaml .Values.jobs.resources | nindent 4 }}
  {{- $given := dig "jobTemplate" dict .Values.adapter.settings }}
  {{- $variables := concat (.Values.jobs.extraEnv | default list) ($given.env | default list) }}
  {{- $of := "jobs.extraEnv or adapter.settings.jobTemplate.env" }}
  {{- with include "pull-secret.variables" (dict "own" (include "pull-secret.tracing-variables" .) "given" $variables "of" $of) | trim }}
  env: {{- . | nindent 4 }}
  {{- end }}
  {{- with concat (.Values.jobs.extraVolumes | default list) ($given.volumes | default list) }}
  volumes: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with concat (.Values.jobs.extraVolumeMounts | default list) ($given.volumeMounts | default list) }}
  volumeMounts: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $pod := dict }}
  {{- with .Values.imagePullSecrets }}{{ $pod = dict "imagePullSecrets" . }}{{ end }}
  {{- with merge (deepCopy .Values.jobs.podSpec) $pod }}
  podSpec: {{- toYaml . | nindent 4 }}
  {{- end }}
destinations: {{- toYaml .Values.adapter.destinations | nindent 2 }}
limits:
  writesPerMinute: {{ .Values.adapter.writesPerMinute }}
{{- end }}

{{- define "pull-secret.adapter-config" -}}
{{- $spec := include "pull-secret.config" (dict "own" (include "pull-secret.adapter-spec" .) "further" .Values.adapter.settings) -}}
apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata:
  name: pullsecret-adapter
  namespace: {{ .Values.jobs.namespace }}
spec:
  {{- $spec | nindent 2 }}
log: {level: {{ .Values.log.level }}, format: {{ .Values.log.format }}}
health: {host: 0.0.0.0}
metrics: {host: 0.0.0.0}
{{- end }}

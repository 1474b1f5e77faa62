{{- define "global-pull-secret.labels" -}}
app.kubernetes.io/name: global-pull-secret
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: hyperfleet-pull-secret
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "global-pull-secret.image" -}}
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .version }}{{ end }}
{{- end }}

{{- define "global-pull-secret.own-config" -}}
hosted_kubeconfig: /etc/hosted/kubeconfig
control_plane_namespace: {{ .Release.Namespace }}
original_secret: {{ .Values.originalSecret }}
{{- with .Values.sourceSecret }}{{ if .name }}
source_secret: {{ required "sourceSecret.namespace: needed with sourceSecret.name" .namespace }}/{{ .name }}
{{- end }}{{ end }}
labelled_additional: {{ .Values.labelledAdditional }}
running_images: {{ .Values.runningImages }}
syncer:
  image: {{ include "global-pull-secret.image" (dict "image" .Values.syncerImage "version" .Chart.AppVersion) }}
log: {level: {{ .Values.log.level }}, format: {{ .Values.log.format }}}
health: {host: 0.0.0.0}
metrics: {host: 0.0.0.0}
{{- end }}

{{/* The configuration with further settings, which may not replace what the chart depends on. */}}
{{- define "global-pull-secret.config" -}}
{{- mergeOverwrite (deepCopy .Values.settings) (include "global-pull-secret.own-config" . | fromYaml) | toYaml -}}
{{- end }}

{{/* OpenTelemetry's variables, as a list of YAML; empty without an endpoint. */}}
{{- define "global-pull-secret.tracing-variables" -}}
{{- with .Values.tracing -}}
{{- if .endpoint -}}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .endpoint | quote }}}
- {name: OTEL_TRACES_SAMPLER, value: {{ .sampler }}}
- {name: OTEL_TRACES_SAMPLER_ARG, value: {{ .samplerArg | quote }}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The controller's variables, as a list of YAML: the chart's own, and what is given, which may not name one again. */}}
{{- define "global-pull-secret.variables" -}}
{{- $variables := include "global-pull-secret.tracing-variables" . | fromYamlArray -}}
{{- $names := list -}}
{{- range $variables }}{{ $names = append $names .name }}{{ end -}}
{{- range .Values.extraEnv | default list -}}
{{- if has .name $names }}{{ fail (printf "extraEnv: the variable %s is there already, and cannot be replaced" .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- $variables = append $variables . -}}
{{- end -}}
{{- with $variables }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* The egress to the collector of traces, if there is one. */}}
{{- define "global-pull-secret.to-collector" -}}
{{- with .Values.tracing.endpoint -}}
{{- $url := urlParse . -}}
- ports: [{port: {{ (splitList ":" $url.host | rest | first) | default (ternary 443 80 (eq $url.scheme "https")) }}}]
{{- end -}}
{{- end }}

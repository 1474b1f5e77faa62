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
labelled_additional: {{ .Values.labelledAdditional }}
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

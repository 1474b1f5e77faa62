{{- define "pull-secret.sentinel-config" -}}
resource_type: clusters
clients:
  hyperfleet_api:
    base_url: {{ include "pull-secret.api-url" . }}
    ca_file: /var/run/secrets/hyperfleet/ca.crt
    auth:
      token_path: /var/run/secrets/hyperfleet/token
  broker:
    topic: {{ .Values.broker.topic }}
broker:
  type: {{ .Values.broker.type }}
  {{- if eq .Values.broker.type "googlepubsub" }}
  googlepubsub:
    project_id: {{ required "broker.googleProject: needed where broker.type is googlepubsub" .Values.broker.googleProject }}
  {{- end }}
leader_election:
  method: lease
  namespace: {{ .Release.Namespace }}
log: {level: {{ .Values.log.level }}, format: {{ .Values.log.format }}}
health: {host: 0.0.0.0}
metrics: {host: 0.0.0.0}
{{- end }}

{{/* RabbitMQ's address, which holds a password. */}}
{{- define "pull-secret.broker-variable" -}}
{{- if eq .root.Values.broker.type "rabbitmq" -}}
- name: BROKER_RABBITMQ_URL
  valueFrom:
    secretKeyRef: {name: {{ .secret.name }}, key: {{ .secret.key }}}
{{- end }}
{{- end }}

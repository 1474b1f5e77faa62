{{- define "pull-secret.from-monitoring" -}}
- from:
    - namespaceSelector:
        matchExpressions:
          - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson .Values.networkPolicies.monitoringNamespaces }}}
  ports:
    - {port: metrics}
{{- end }}

{{- define "pull-secret.to-dns" -}}
- ports:
    {{- range .Values.networkPolicies.ports.dns }}
    - {port: {{ . }}, protocol: UDP}
    - {port: {{ . }}}
    {{- end }}
{{- end }}

{{- define "pull-secret.to-api" -}}
{{- if .Values.api.enabled -}}
- to:
    - podSelector:
        matchLabels: {app.kubernetes.io/name: hyperfleet-api}
  ports: [{port: api}]
{{- else -}}
- ports: [{port: {{ (urlParse (include "pull-secret.api-url" .)).host | splitList ":" | last | int | default 443 }}}]
{{- end }}
{{- end }}

{{- define "pull-secret.to-metadata-server" -}}
- to:
    - ipBlock: {cidr: 169.254.169.252/32}
    - ipBlock: {cidr: 169.254.169.254/32}
  ports: [{port: 988}, {port: 80}]
{{- end }}

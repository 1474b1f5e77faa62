{{- define "pull-secret.credentials-config" -}}
clients:
  hyperfleet_api:
    base_url: {{ include "pull-secret.api-url" . }}
    ca_file: /var/run/secrets/hyperfleet/ca.crt
    auth:
      token_path: /var/run/secrets/hyperfleet/token
{{- with .Values.credentials }}
{{- if or .databaseCaSecret .databaseCaConfigMap }}
database:
  ssl: {root_cert_file: /var/run/credentials/database/ca.crt}
{{- end }}
keys:
  {{- range .keys.ids }}
  - {id: {{ . | quote }}, file: /var/run/credentials/keys/{{ . }}}
  {{- end }}
{{- if not .registries }}{{ fail "credentials.registries: needed where credentials.enabled is true" }}{{ end }}
registries:
  {{- range .registries }}
  {{- $folder := printf "/var/run/credentials/registries/%s" .name }}
  {{- $files := dict }}
  {{- if or .tokenSecret (eq .type "acr") }}{{ $_ := set $files "token_file" (printf "%s/token" $folder) }}{{ end }}
  {{- if .passwordSecret }}{{ $_ := set $files "password_file" (printf "%s/password" $folder) }}{{ end }}
  {{- if .certificateSecretName }}{{ $_ := set $files "cert_file" (printf "%s/tls.crt" $folder) }}{{ $_ := set $files "key_file" (printf "%s/tls.key" $folder) }}{{ end }}
  {{- if .caConfigMap }}{{ $_ := set $files "ca_file" (printf "%s/ca.crt" $folder) }}{{ end }}
  - {{- merge $files (omit . "tokenSecret" "passwordSecret" "certificateSecretName" "caConfigMap") | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- if .Values.credentials.httpApi.enabled }}
server:
  enabled: true
  host: 0.0.0.0
  port: 8001
  tls: {cert_file: /var/run/credentials/tls/tls.crt, key_file: /var/run/credentials/tls/tls.key}
{{- end }}
log: {level: {{ .Values.log.level }}, format: {{ .Values.log.format }}}
health: {host: 0.0.0.0}
metrics: {host: 0.0.0.0}
{{- end }}

{{/* The ports of the registries, each once: those of their addresses, of the hosts of their images, and of the services that mint tokens. */}}
{{- define "pull-secret.registry-ports" -}}
{{- $ports := list -}}
{{- range .Values.credentials.registries -}}
{{- $url := urlParse .url -}}
{{- $ports = append $ports ((splitList ":" $url.host | rest | first) | default (ternary "443" "80" (eq $url.scheme "https"))) -}}
{{- if .host }}{{ $ports = append $ports ((splitList ":" .host | rest | first) | default "443") }}{{ end -}}
{{- if has .type (list "acr" "ecr" "gar" "red_hat") }}{{ $ports = append $ports "443" }}{{ end -}}
{{- with .token_url }}{{ $ports = append $ports ((splitList ":" (urlParse .).host | rest | first) | default "443") }}{{ end -}}
{{- end -}}
{{- range $ports | uniq }}
- {port: {{ . }}}
{{- end -}}
{{- end }}

{{/* The audience of the token for Microsoft Entra ID, which differs between its clouds. */}}
{{- define "pull-secret.entra-audience" -}}
{{- $url := .token_url | default "" -}}
api://AzureADTokenExchange{{ if contains "microsoftonline.us" $url }}USGov{{ else if contains "partner.microsoftonline.cn" $url }}China{{ end }}
{{- end }}

{{- define "pull-secret.api-config" -}}
{{- $issuer := .Values.clusterIssuer.url -}}
{{- $account := printf "system:serviceaccount:%s:" .Release.Namespace -}}
server:
  host: 0.0.0.0
  tls:
    enabled: true
    cert_file: /etc/hyperfleet/tls/tls.crt
    key_file: /etc/hyperfleet/tls/tls.key
  jwt:
    enabled: true
    configs:
      - issuer_url: {{ $issuer }}
        jwk_cert_url: {{ .Values.clusterIssuer.jwksUrl }}
        {{- if hasPrefix "https://kubernetes.default.svc" .Values.clusterIssuer.jwksUrl }}
        jwk_cert_ca_file: /etc/hyperfleet/kubernetes/ca.crt
        {{- end }}
        audience: hyperfleet-api
        identity_claim: sub
      {{- with .Values.api.issuers }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
authorization:
  grants:
    - name: sentinel
      issuer: {{ $issuer }}
      subject: {{ $account }}sentinel
      kinds: [Cluster]
      verbs: [get, list, watch]
      all_tenants: true
    - name: pullsecret-adapter
      issuer: {{ $issuer }}
      subject: {{ $account }}pullsecret-adapter
      kinds: [Cluster]
      verbs: [get, list]
      reports_as: [pullsecret]
      reads_pull_secrets: true
      all_tenants: true
    {{- if .Values.credentials.enabled }}
    - name: pull-secret-credentials
      issuer: {{ $issuer }}
      subject: {{ $account }}pull-secret-credentials
      kinds: [Cluster]
      verbs: [get, list, watch, update]
      reads_pull_secrets: true
      all_tenants: true
    {{- end }}
    {{- if .Values.sweep.enabled }}
    - name: pull-secret-sweep
      issuer: {{ $issuer }}
      subject: {{ $account }}pull-secret-sweep
      kinds: [Cluster]
      verbs: [get, list]
      sweeps: true
      all_tenants: true
    {{- end }}
    {{- with .Values.api.operatorsNamespace }}
    - name: operators
      issuer: {{ $issuer }}
      claim: {name: sub, pattern: "system:serviceaccount:{{ . }}:[a-z0-9.-]+"}
      kinds: ["*"]
      verbs: ["*"]
      chooses_destination: true
      force_deletes: true
      all_tenants: true
    {{- end }}
    {{- with .Values.api.grants }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- if or .Values.api.databaseCaSecret .Values.api.databaseCaConfigMap }}
database:
  ssl: {root_cert_file: /etc/hyperfleet/database/ca.crt}
{{- end }}
log: {level: {{ .Values.log.level }}, format: {{ .Values.log.format }}}
health: {host: 0.0.0.0}
metrics: {host: 0.0.0.0}
pull_secret:
  keys:
    {{- range .Values.api.encryptionKeys.ids }}
    - {id: {{ . | quote }}, file: /etc/hyperfleet/keys/{{ . }}}
    {{- end }}
{{- end }}

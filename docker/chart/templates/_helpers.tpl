{{- define "attendant.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 letters, so that suffixes fit. Release names may contain dots, but names of Services may not. */}}
{{- define "attendant.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "attendant.name" .) .Release.Name -}}
{{- .Release.Name | replace "." "-" | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "attendant.name" .) | replace "." "-" | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "attendant.selector" -}}
app.kubernetes.io/name: {{ include "attendant.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "attendant.labels" -}}
{{ include "attendant.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "attendant.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "attendant.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* No default: there is no published image, and tags can move. */}}
{{- define "attendant.image" -}}
{{- $image := .Values.image -}}
{{- $repository := $image.repository | required "image.repository: name the repository that you pushed the image to" -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- $tag := $image.tag | required "image.digest: give the digest (sha256:…) that pushing the image printed" -}}
{{- printf "%s:%s" $repository $tag -}}
{{- end -}}
{{- end -}}

{{- define "attendant.grace" -}}
{{- add .Values.shutdown.lameDuckSeconds .Values.shutdown.drainSeconds 10 -}}
{{- end -}}

{{/* Pod Security Standard "restricted", with a read-only root file system. */}}
{{- define "attendant.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Combinations that the schema cannot refuse. */}}
{{- define "attendant.check" -}}
{{- $values := .Values -}}
{{- if and $values.models.init.image $values.models.volume -}}
{{- fail "models: give a volume, or an init container that fills one, not both" -}}
{{- end -}}
{{- range $values.models.serve -}}
{{- if and (regexMatch "^([^=,]+=)?hf:" .) (not $values.models.init.image) (not $values.models.volume) -}}
{{- fail (printf "models.serve: %s: pods cannot download models; download them in models.init, or give a models.volume with a cache" .) -}}
{{- end -}}
{{- end -}}
{{- if eq (int $values.service.port) (int $values.service.httpPort) -}}
{{- fail "service.port and service.httpPort are the same" -}}
{{- end -}}
{{- if and $values.tls.clientCaSecret (not $values.tls.secret) -}}
{{- fail "tls.clientCaSecret needs tls.secret" -}}
{{- end -}}
{{- if and $values.autoscaling.enabled (gt (int $values.autoscaling.minReplicas) (int $values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is more than maxReplicas" -}}
{{- end -}}
{{- $cpu := dig "requests" "cpu" "" $values.resources -}}
{{- if and $values.autoscaling.enabled (eq $values.autoscaling.metric "cpu") (not $cpu) -}}
{{- fail "autoscaling on cpu needs resources.requests.cpu, of which cpuPercent is a part" -}}
{{- end -}}
{{- if and $values.serviceMonitor.enabled $values.tokens.secret (not $values.serviceMonitor.tokenSecret) -}}
{{- fail "serviceMonitor.tokenSecret: with tokens.secret, /metrics needs a token with the scope metrics" -}}
{{- end -}}
{{- if and $values.serviceMonitor.enabled $values.tls.clientCaSecret (not $values.serviceMonitor.tlsConfig) -}}
{{- fail "serviceMonitor.tlsConfig: with tls.clientCaSecret, /metrics needs a certificate (cert and keySecret)" -}}
{{- end -}}
{{- end -}}

{{- define "attendant.readyProbe" -}}
timeoutSeconds: 3
{{- if .Values.tls.secret }}
httpGet: {path: /readyz, port: http, scheme: HTTPS}
{{- else }}
grpc: {port: 8001}
{{- end }}
{{- end -}}

{{- define "acktrail.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "acktrail.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* Of a list: root, component. */ -}}
{{- define "acktrail.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "acktrail.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "acktrail.name" . }}{{ else }}default{{ end -}}
{{- end }}

{{- define "acktrail.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}
image: {{ printf "%s:%s" $image.repository ($image.tag | default $root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{- /* A pod changes with its settings, so that a new version is started. */ -}}
{{- define "acktrail.podMetadata" -}}
{{- $root := index . 0 -}}
metadata:
  labels:
    {{- include "acktrail.selector" . | nindent 4 }}
    {{- with $root.Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/settings: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
    {{- with $root.Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{- /* Of a list: root, the part's values. */ -}}
{{- define "acktrail.podSpec" -}}
{{- $root := index . 0 -}}{{- $part := index . 1 -}}
{{- $security := mergeOverwrite (deepCopy $root.Values.podSecurityContext) ($part.podSecurityContext | default dict) -}}
serviceAccountName: {{ include "acktrail.serviceAccount" $root }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: {{ ne (int $security.runAsUser) 0 }}
  seccompProfile: {type: RuntimeDefault}
  {{- toYaml $security | nindent 2 }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "acktrail.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "acktrail.environment" -}}
env:
  - {name: HOME, value: /tmp}
{{- with .Values.existingSecret }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end }}

{{- define "acktrail.mounts" -}}
- {name: settings, mountPath: /etc/acktrail, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.lake.existingClaim }}
- {name: lake, mountPath: /var/lib/acktrail}
{{- end }}
{{- end }}

{{- define "acktrail.volumes" -}}
- name: settings
  configMap: {name: {{ include "acktrail.name" . }}}
- name: tmp
  emptyDir: {}
{{- with .Values.lake.existingClaim }}
- name: lake
  persistentVolumeClaim: {claimName: {{ . | quote }}}
{{- end }}
{{- end }}

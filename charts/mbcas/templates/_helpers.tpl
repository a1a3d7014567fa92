{{- /* `helm upgrade --reuse-values` brings the values of the release before without the defaults of
values that are new. Says so, instead of an error about the first one that is missing. */ -}}
{{- define "mbcas.complete" -}}
{{- $values := .Values -}}
{{- range list "podDisruptionBudget" "criticalPodsQuota" "openshift" -}}
{{- if not (hasKey $values .) -}}
{{- fail (printf "the value %s has no default: use --reset-then-reuse-values instead of --reuse-values" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A file of config/, in the namespace of the release. */ -}}
{{- define "mbcas.file" -}}
{{- .root.Files.Get .name | replace "mbcas-system" .root.Release.Namespace -}}
{{- end -}}

{{- /* The image of one part, by its digest where one is given, else by the tag. */ -}}
{{- define "mbcas.image" -}}
{{- with .root.Values.image.registry }}{{ . }}/{{ end -}}
mbcas-{{ .part }}
{{- with get .root.Values.image.digests .part -}}
@{{ . }}
{{- else -}}
:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The affinity of one part, with the architectures of the images in each term for nodes, because
each term alone may choose a node. */ -}}
{{- define "mbcas.affinity" -}}
{{- $affinity := deepCopy (get .root.Values .part).affinity -}}
{{- with .root.Values.image.architectures -}}
{{- $here := dict "key" "kubernetes.io/arch" "operator" "In" "values" . -}}
{{- $node := $affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $terms := $required.nodeSelectorTerms | default (list (dict)) -}}
{{- range $terms -}}
{{- $_ := set . "matchExpressions" (append (.matchExpressions | default list) $here) -}}
{{- end -}}
{{- $_ := set $required "nodeSelectorTerms" $terms -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" $required -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- with $affinity }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* Flags of the controller, as a list in YAML. */ -}}
{{- define "mbcas.controllerArgs" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- if ne .Release.Namespace "mbcas-system" }}
- --namespace={{ .Release.Namespace }}
{{- if not (hasKey $settings "exclude-namespaces") }}
{{- $_ := set $settings "exclude-namespaces" (printf "kube-system,kube-public,kube-node-lease,%s" .Release.Namespace) }}
{{- end }}
{{- end }}
{{- if .Values.controller.dryRun }}
- --dry-run
{{- end }}
{{- with .Values.initialMode }}
- --initial-mode={{ . }}
{{- end }}
{{- if .Values.controller.auditLog }}
- --audit-log=-
{{- end }}
{{- range $key, $value := $settings }}
- {{ printf "--%s=%v" $key $value | quote }}
{{- end }}
{{- range .Values.controller.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "mbcas.agentMetrics" -}}
{{- if or .Values.agent.metrics .Values.monitoring.enabled }}true{{ end -}}
{{- end -}}

{{- define "mbcas.agentArgs" -}}
{{- if ne .Release.Namespace "mbcas-system" }}
- --namespace={{ .Release.Namespace }}
{{- end }}
{{- if include "mbcas.agentMetrics" . }}
- --metrics-bind-address=:8082
{{- end }}
{{- range .Values.agent.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

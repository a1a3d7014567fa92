// The alerts and the dashboard in the layout of a monitoring mixin, from the files beside this one:
//   (import 'mbcas/config/monitoring/mixin.libsonnet') + { _config+:: { ... } }
// or, for one file of rules:
//   jsonnet -S -e 'std.manifestYamlDoc((import "config/monitoring/mixin.libsonnet").prometheusAlerts)'
{
  _config+:: {
    // Where the pages are that runbook_url names; empty: where rules.yaml says.
    runbooks: '',
  },

  local config = self._config,
  local withRunbook(rule) =
    if config.runbooks == '' || !std.objectHas(rule, 'alert') then rule
    else rule { annotations+: { runbook_url: '%s/%s.md' % [config.runbooks, rule.alert] } },

  prometheusAlerts+:: {
    groups+: [
      group { rules: [withRunbook(rule) for rule in group.rules] }
      for group in std.parseYaml(importstr 'rules.yaml').spec.groups
    ],
  },

  grafanaDashboards+:: {
    'mbcas.json': import 'dashboard.json',
  },
}

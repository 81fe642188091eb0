// The labels that a node may set on its own Node object.

const ALLOWED_LABELS = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
])
const ALLOWED_DOMAINS = ['kubelet.kubernetes.io', 'node.kubernetes.io']
const RESTRICTED_DOMAIN = 'node-restriction.kubernetes.io'
const KUBERNETES_DOMAINS = ['kubernetes.io', 'k8s.io']

type Labels = Readonly<Record<string, string>>

/** Returns the keys that differ and that a node must not change, in order. */
export function forbiddenLabelChanges(labels: Labels = {}, oldLabels: Labels = {}): string[] {
  const keys = new Set([...Object.keys(labels), ...Object.keys(oldLabels)])
  return [...keys].filter((key) => labels[key] !== oldLabels[key] && !isAllowed(key)).sort()
}

function isAllowed(key: string): boolean {
  const separator = key.indexOf('/')
  const domain = separator < 0 ? '' : key.slice(0, separator)
  if (isInDomain(domain, RESTRICTED_DOMAIN)) return false
  if (!KUBERNETES_DOMAINS.some((parent) => isInDomain(domain, parent))) return true
  return ALLOWED_LABELS.has(key) || ALLOWED_DOMAINS.some((parent) => isInDomain(domain, parent))
}

const isInDomain = (domain: string, parent: string): boolean => domain === parent || domain.endsWith(`.${parent}`)

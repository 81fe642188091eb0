// Node: a machine that runs pods and holds their volumes. Its agent registers it with a status already filled in,
// and publishes driver topology as labels through /status.
import { ageColumn, nameColumn } from '../../columns.ts'
import { type Column, defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { validateNode, validateNodeStatus, validateNodeUpdate } from './node-rules.ts'
import { type Node, node } from './node-schema.ts'

export const nodeKind = defineKind<Node>({
  group: '',
  versions: ['v1'],
  kind: 'Node',
  plural: 'nodes',
  singular: 'node',
  shortNames: ['no'],
  namespaced: false,
  type: node,

  nameErrors: dns1123SubdomainProblems,
  defaults(object) {
    const { spec, status } = object
    if (spec) alignPodCIDRs(spec)
    if (status?.capacity && !status.allocatable) status.allocatable = { ...status.capacity }
  },
  validate: (object, errors) => validateNode(object, errors),
  validateUpdate: validateNodeUpdate,
  status: {
    acceptsMetadata: true,
    keptOnCreate: true,
    validate: (next, _old, errors) => validateNodeStatus(next, errors),
  },

  selectableFields: { 'spec.unschedulable': (object) => String(object.spec?.unschedulable ?? false) },
  columns: [
    nameColumn,
    { name: 'Status', type: 'string', doc: 'Whether the node is ready and takes new pods.', cell: statusCell },
    { name: 'Roles', type: 'string', doc: 'Roles named by its labels.', cell: rolesCell },
    ageColumn,
    {
      name: 'Version',
      type: 'string',
      doc: 'Version of its agent.',
      cell: (object) => object.status?.nodeInfo?.kubeletVersion ?? '',
    },
    ...wideColumns(),
  ],
  deleteReturnsObject: false,
})

/** podCIDR is the first of podCIDRs under an older name; where they disagree the older name wins. */
function alignPodCIDRs(spec: NonNullable<Node['spec']>): void {
  if (spec.podCIDR && spec.podCIDRs?.[0] !== spec.podCIDR) spec.podCIDRs = [spec.podCIDR]
  else if (!spec.podCIDR && spec.podCIDRs?.[0]) spec.podCIDR = spec.podCIDRs[0]
}

function statusCell({ spec, status }: Node): string {
  const ready = status?.conditions?.findLast((condition) => condition.type === 'Ready')
  const words = [ready ? (ready.status === 'True' ? 'Ready' : 'NotReady') : 'Unknown']
  if (spec?.unschedulable) words.push('SchedulingDisabled')
  return words.join(',')
}

const ROLE_LABEL_PREFIX = 'node-role.kubernetes.io/'

function rolesCell({ metadata }: Node): string {
  const roles = new Set<string>()
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    if (key.startsWith(ROLE_LABEL_PREFIX)) roles.add(key.slice(ROLE_LABEL_PREFIX.length))
    if (key === 'kubernetes.io/role') roles.add(value)
  }
  roles.delete('')
  return [...roles].sort().join(',') || '<none>'
}

function wideColumns(): Column<Node>[] {
  const info = (object: Node) => object.status?.nodeInfo
  const address = (object: Node, type: string) =>
    object.status?.addresses?.find((candidate) => candidate.type === type)?.address ?? '<none>'
  const wide = (name: string, doc: string, cell: (object: Node) => string): Column<Node> => ({
    name,
    type: 'string',
    wide: true,
    doc,
    cell,
  })
  return [
    wide('Internal-IP', 'Address inside the cluster.', (object) => address(object, 'InternalIP')),
    wide('External-IP', 'Address outside the cluster.', (object) => address(object, 'ExternalIP')),
    wide('OS-Image', 'Operating system.', (object) => info(object)?.osImage || '<unknown>'),
    wide('Kernel-Version', 'Kernel and architecture.', (object) => {
      const kernel = info(object)?.kernelVersion || '<unknown>'
      const architecture = info(object)?.architecture
      return architecture ? `${kernel} (${architecture})` : kernel
    }),
    wide('Container-Runtime', 'What runs its containers.', (object) => {
      return info(object)?.containerRuntimeVersion || '<unknown>'
    }),
  ]
}

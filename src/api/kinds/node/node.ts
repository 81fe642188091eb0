// Declares Node: a machine that runs pods.
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
    if (spec) syncPodCIDRs(spec)
    if (status?.capacity && !status.allocatable) status.allocatable = { ...status.capacity }
  },
  validate: (object, errors) => validateNode(object, errors),
  validateUpdate: validateNodeUpdate,
  status: {
    acceptsMetadata: true,
    isKeptOnCreate: true,
    validate: (next, _old, errors) => validateNodeStatus(next, errors),
  },

  selectableFields: { 'spec.unschedulable': (object) => String(object.spec?.unschedulable ?? false) },
  columns: [
    nameColumn,
    { name: 'Status', type: 'string', doc: 'Whether the node is ready and schedulable.', cell: statusCell },
    { name: 'Roles', type: 'string', doc: 'Roles from the labels of the node.', cell: rolesCell },
    ageColumn,
    {
      name: 'Version',
      type: 'string',
      doc: 'Version of the node agent.',
      cell: (object) => object.status?.nodeInfo?.kubeletVersion,
    },
    ...wideColumns(),
  ],
  deleteReturnsObject: false,
})

/** Sets podCIDR, the older form of podCIDRs[0], and podCIDRs to the same value. If they differ, podCIDR is used. */
function syncPodCIDRs(spec: NonNullable<Node['spec']>): void {
  if (spec.podCIDR && spec.podCIDRs?.[0] !== spec.podCIDR) spec.podCIDRs = [spec.podCIDR]
  else if (!spec.podCIDR && spec.podCIDRs?.[0]) spec.podCIDR = spec.podCIDRs[0]
}

function statusCell({ spec, status }: Node): string {
  const readyCondition = status?.conditions?.findLast((condition) => condition.type === 'Ready')
  const states = [readyCondition ? (readyCondition.status === 'True' ? 'Ready' : 'NotReady') : 'Unknown']
  if (spec?.unschedulable) states.push('SchedulingDisabled')
  return states.join(',')
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
  const systemInfoOf = (object: Node) => object.status?.nodeInfo
  const addressOf = (object: Node, type: string) =>
    object.status?.addresses?.find((candidate) => candidate.type === type)?.address ?? '<none>'
  const wideColumn = (name: string, doc: string, cell: (object: Node) => string): Column<Node> => ({
    name,
    type: 'string',
    wide: true,
    doc,
    cell,
  })
  return [
    wideColumn('Internal-IP', 'IP address inside the cluster.', (object) => addressOf(object, 'InternalIP')),
    wideColumn('External-IP', 'IP address outside the cluster.', (object) => addressOf(object, 'ExternalIP')),
    wideColumn('OS-Image', 'Operating system.', (object) => systemInfoOf(object)?.osImage || '<unknown>'),
    wideColumn('Kernel-Version', 'Kernel and architecture.', (object) => {
      const kernel = systemInfoOf(object)?.kernelVersion || '<unknown>'
      const architecture = systemInfoOf(object)?.architecture
      return architecture ? `${kernel} (${architecture})` : kernel
    }),
    wideColumn('Container-Runtime', 'Container runtime.', (object) => {
      return systemInfoOf(object)?.containerRuntimeVersion || '<unknown>'
    }),
  ]
}

// Checks that the API server serves the kinds that Stowage uses.
import type { Kind } from '../../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { leaseKind } from '../../../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import { podKind } from '../../../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../../api/kinds/volume-attachment/volume-attachment.ts'
import { type Check, type DoctorContext, type Finding, getDriverFacts } from '../check.ts'

const REQUIRED_KINDS = [
  csiDriverKind,
  csiNodeKind,
  leaseKind,
  nodeKind,
  persistentVolumeClaimKind,
  persistentVolumeKind,
  podKind,
  storageClassKind,
  volumeAttachmentKind,
] as readonly Kind[]

interface OptionalKind {
  readonly kind: Kind
  /** What is not possible without the kind. */
  readonly consequence: string
  /** The first version of Kubernetes that serves it by default. */
  readonly since: string
  /** Returns whether the driver could use the kind. */
  isUsable(context: DoctorContext): boolean
}

const OPTIONAL_KINDS: readonly OptionalKind[] = [
  {
    kind: volumeAttributesClassKind as Kind,
    consequence: 'the attributes of volumes cannot be modified',
    since: '1.34',
    isUsable: (context) => getDriverFacts(context)?.controller.has('MODIFY_VOLUME') !== false,
  },
  {
    kind: csiStorageCapacityKind as Kind,
    consequence: 'the scheduler does not consider storage capacity',
    since: '1.24',
    isUsable: (context) => getDriverFacts(context)?.controller.has('GET_CAPACITY') !== false,
  },
]

export const servedApis: Check = {
  id: 'apis',
  title: 'API server',
  async run(context) {
    const { cluster, server, connection } = context
    const findings: Finding[] = []
    for (const kind of REQUIRED_KINDS) {
      if (await cluster.serves(kind)) continue
      findings.push({
        status: 'error',
        message: `The server does not serve ${nameOf(kind)}, without which volumes cannot be managed.`,
        remedy: 'Enable the API with --runtime-config of the API server, or upgrade the server.',
      })
    }
    for (const { kind, consequence, since, isUsable } of OPTIONAL_KINDS) {
      if (!isUsable(context) || (await cluster.serves(kind))) continue
      findings.push({
        status: 'warning',
        message: `The server does not serve ${nameOf(kind)}: ${consequence}.`,
        remedy: `Enable the API with --runtime-config of the API server, or upgrade to Kubernetes ${since} or later.`,
      })
    }
    if (findings.length > 0) return findings
    const version = server.version ? `Kubernetes ${server.version}` : 'The server'
    return [{ status: 'ok', message: `${version} at ${connection.server} serves every API that Stowage uses.` }]
  },
}

const nameOf = ({ group, plural }: Kind): string => (group ? `${plural}.${group}` : plural)

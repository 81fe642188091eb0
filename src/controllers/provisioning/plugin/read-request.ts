// Converts a claim and its class to the request of a plugin, or returns the reason to reject it: everything that the plugin
// has not declared is rejected before the call. Pure.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import type { ProvisionRequest as LifecycleRequest } from '../provisioner.ts'
import type { AccessMode, ProvisionerPlugin, ProvisionRequest, VolumeMode } from './contract.ts'
import { readParameters } from './read-parameters.ts'
import { readSelector } from './read-selector.ts'
import { quoted } from './wording.ts'

export type ReadRequest =
  | { readonly is: 'understood'; readonly request: ProvisionRequest; readonly secrets: readonly string[] }
  | { readonly is: 'refused'; readonly because: string }
  /** Someone else fills the volume, and makes it. */
  | { readonly is: 'ignored'; readonly because: string }

export const ACCESS_MODES: readonly AccessMode[] = ['ReadWriteOnce', 'ReadWriteOncePod']
export const VOLUME_MODES: readonly VolumeMode[] = ['Filesystem']

export function readRequest(plugin: ProvisionerPlugin, given: LifecycleRequest): ReadRequest {
  const { claim, storageClass, volumeName, selectedNode } = given
  const { name: provisioner } = plugin
  const className = storageClass.metadata.name ?? claimClassName(claim) ?? ''

  const populator = populatorOf(claim)
  if (populator) return { is: 'ignored', because: `a populator of ${populator} makes this volume` }
  const beyond = notUnderstood(plugin, claim, storageClass)
  if (beyond) return { is: 'refused', because: beyond }
  const parameters = readParameters(plugin.parameters ?? {}, storageClass.parameters ?? {}, { className, provisioner })
  if (parameters.is === 'refused') return parameters
  const selector = readSelector(plugin.labels ?? {}, claim.spec?.selector, provisioner)
  if (selector.is === 'refused') return selector

  const { requests = {}, limits = {} } = claim.spec?.resources ?? {}
  const { namespace = '', name = '', uid = '', labels = {}, annotations = {} } = claim.metadata
  const request: ProvisionRequest = {
    volumeName,
    sizeBytes: quantityToBytes(requests.storage ?? '0'),
    sizeLimitBytes: limits.storage === undefined ? undefined : quantityToBytes(limits.storage),
    accessModes: claim.spec?.accessModes ?? [],
    volumeMode: volumeModeOf(claim),
    parameters: parameters.values,
    labels: selector.labels,
    mountOptions: storageClass.mountOptions ?? [],
    allowedTopologies: topologiesOf(storageClass),
    selectedNode,
    className,
    claim: { namespace, name, uid, labels, annotations },
  }
  return { is: 'understood', request, secrets: parameters.secrets }
}

/** What the claim or the class asks for beyond what the plugin says it can do, as a sentence. */
function notUnderstood(plugin: ProvisionerPlugin, claim: PersistentVolumeClaim, storageClass: StorageClass) {
  const { name, accessModes = ACCESS_MODES, volumeModes = VOLUME_MODES, topologyKeys = [] } = plugin
  const { spec = {} } = claim

  const modes = (spec.accessModes ?? []).filter((mode) => !accessModes.includes(mode))
  if (modes.length > 0) {
    return `${name} makes no ${modes.join(', ')} volumes, only ${accessModes.join(', ')}. Ask for one of those, or name a class of another provisioner.`
  }

  const volumeMode = volumeModeOf(claim)
  if (!volumeModes.includes(volumeMode)) {
    const offered = volumeModes.join(' or ')
    return `${name} makes no ${volumeMode} volumes, only ${offered}. Ask for volumeMode ${offered}, or name a class of another provisioner.`
  }

  const source = spec.dataSourceRef ?? spec.dataSource
  if (source)
    return `${name} makes empty volumes; it cannot fill one from the ${source.kind} "${source.name}". Leave the data source out, or name a class of another provisioner.`

  if (spec.volumeAttributesClassName) {
    return `The volumes of ${name} have no attributes, so it cannot honour the attributes class "${spec.volumeAttributesClassName}". Leave it out, or name a class of another provisioner.`
  }
  const resources = Object.keys(spec.resources?.requests ?? {}).filter((resource) => resource !== 'storage')
  if (resources.length > 0)
    return `${name} cannot promise ${resources.join(', ')}; it provides storage alone. Ask for that only, or name a class of another provisioner.`

  const mountOptions = storageClass.mountOptions ?? []
  if (mountOptions.length > 0 && !plugin.takesMountOptions) {
    return `Volumes of ${name} take no mount options, but their class "${storageClass.metadata.name}" has ${quoted(mountOptions)}. Take them out of the class, or name another.`
  }
  const keys = topologiesOf(storageClass).flatMap((term) => Object.keys(term))
  const unknown = [...new Set(keys)].filter((key) => !topologyKeys.includes(key))
  if (unknown.length > 0) {
    const known = topologyKeys.length > 0 ? `${quoted(topologyKeys)} only` : 'none'
    return `Class "${storageClass.metadata.name}" restricts where volumes may be by labels that ${name} does not understand: ${quoted(unknown)}. It understands ${known}. Leave them out of the class's allowedTopologies, or name another class.`
  }
  return undefined
}

const volumeModeOf = (claim: PersistentVolumeClaim): VolumeMode => claim.spec?.volumeMode ?? 'Filesystem'

function topologiesOf({ allowedTopologies = [] }: StorageClass): Record<string, readonly string[]>[] {
  return allowedTopologies.map(({ matchLabelExpressions = [] }) =>
    Object.fromEntries(matchLabelExpressions.map(({ key, values }) => [key, values])),
  )
}

/** The kind of a data source that is neither a claim nor a snapshot: its own populator makes and fills the volume. */
function populatorOf({ spec }: PersistentVolumeClaim): string | undefined {
  const source = spec?.dataSourceRef ?? spec?.dataSource
  if (!source) return undefined
  const { apiGroup = '', kind } = source
  const isOurs = (apiGroup === '' && kind === 'PersistentVolumeClaim') || kind === 'VolumeSnapshot'
  return isOurs ? undefined : `${kind}.${apiGroup}`
}

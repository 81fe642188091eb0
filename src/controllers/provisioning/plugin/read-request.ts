// Converts a claim and its class to the request of a plugin. Rejects features that the plugin has not declared. Pure.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import type { ProvisionRequest as ClaimRequest } from '../provisioner.ts'
import type { AccessMode, ProvisionerPlugin, ProvisionRequest, VolumeMode } from './contract.ts'
import { matchSelector } from './match-selector.ts'
import { quoteNames } from './message-text.ts'
import { readParameters } from './read-parameters.ts'

export type RequestResult =
  | { readonly is: 'accepted'; readonly request: ProvisionRequest; readonly secrets: readonly string[] }
  | { readonly is: 'rejected'; readonly message: string }
  /** A volume populator creates and fills the volume. */
  | { readonly is: 'ignored'; readonly message: string }

const DEFAULT_ACCESS_MODES: readonly AccessMode[] = ['ReadWriteOnce', 'ReadWriteOncePod']
const DEFAULT_VOLUME_MODES: readonly VolumeMode[] = ['Filesystem']

export function readRequest(plugin: ProvisionerPlugin, claimRequest: ClaimRequest): RequestResult {
  const { claim, storageClass, volumeName, selectedNode } = claimRequest
  const { name: provisioner } = plugin
  const className = storageClass.metadata.name ?? claimClassName(claim) ?? ''

  const populatedKind = populatedKindOf(claim)
  if (populatedKind) return { is: 'ignored', message: `a populator of ${populatedKind} creates this volume` }
  const problem = findUnsupported(plugin, claim, storageClass)
  if (problem) return { is: 'rejected', message: problem }
  const parameters = readParameters(plugin.parameters ?? {}, storageClass.parameters ?? {}, { className, provisioner })
  if (parameters.is === 'rejected') return parameters
  const selector = matchSelector(plugin.labels ?? {}, claim.spec?.selector, provisioner)
  if (selector.is === 'rejected') return selector

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
  return { is: 'accepted', request, secrets: parameters.secrets }
}

/** Returns a message about the first feature of the claim or class that the plugin has not declared. */
function findUnsupported(plugin: ProvisionerPlugin, claim: PersistentVolumeClaim, storageClass: StorageClass) {
  const { name, accessModes = DEFAULT_ACCESS_MODES, volumeModes = DEFAULT_VOLUME_MODES, topologyKeys = [] } = plugin
  const { spec = {} } = claim

  const unsupportedModes = (spec.accessModes ?? []).filter((mode) => !accessModes.includes(mode))
  if (unsupportedModes.length > 0) {
    return `${name} does not create ${unsupportedModes.join(', ')} volumes, only ${accessModes.join(', ')}. Request one of those, or use a class of another provisioner.`
  }

  const volumeMode = volumeModeOf(claim)
  if (!volumeModes.includes(volumeMode)) {
    const supportedModes = volumeModes.join(' or ')
    return `${name} does not create ${volumeMode} volumes, only ${supportedModes}. Request volumeMode ${supportedModes}, or use a class of another provisioner.`
  }

  const source = spec.dataSourceRef ?? spec.dataSource
  if (source)
    return `${name} creates empty volumes only; it cannot fill one from the ${source.kind} "${source.name}". Remove the data source, or use a class of another provisioner.`

  if (spec.volumeAttributesClassName && plugin.modify) {
    return `${name} creates volumes without attributes. Create the claim without the attributes class "${spec.volumeAttributesClassName}", and set it when the claim is bound.`
  }
  if (spec.volumeAttributesClassName) {
    return `The volumes of ${name} have no attributes, so it cannot apply the attributes class "${spec.volumeAttributesClassName}". Remove it, or use a class of another provisioner.`
  }
  const resources = Object.keys(spec.resources?.requests ?? {}).filter((resource) => resource !== 'storage')
  if (resources.length > 0)
    return `${name} does not support requests for ${resources.join(', ')}, only for storage. Remove them, or use a class of another provisioner.`

  const mountOptions = storageClass.mountOptions ?? []
  if (mountOptions.length > 0 && !plugin.takesMountOptions) {
    return `Volumes of ${name} do not support mount options, but their class "${storageClass.metadata.name}" has ${quoteNames(mountOptions)}. Remove them from the class, or use another class.`
  }
  const keys = topologiesOf(storageClass).flatMap((term) => Object.keys(term))
  const unsupportedKeys = [...new Set(keys)].filter((key) => !topologyKeys.includes(key))
  if (unsupportedKeys.length > 0) {
    const supportedKeys = topologyKeys.length > 0 ? `${quoteNames(topologyKeys)} only` : 'none'
    return `Class "${storageClass.metadata.name}" restricts the topology of volumes by labels that ${name} does not support: ${quoteNames(unsupportedKeys)}. The provisioner supports ${supportedKeys}. Remove them from the class's allowedTopologies, or use another class.`
  }
  return undefined
}

const volumeModeOf = (claim: PersistentVolumeClaim): VolumeMode => claim.spec?.volumeMode ?? 'Filesystem'

function topologiesOf({ allowedTopologies = [] }: StorageClass): Record<string, readonly string[]>[] {
  return allowedTopologies.map(({ matchLabelExpressions = [] }) =>
    Object.fromEntries(matchLabelExpressions.map(({ key, values }) => [key, values])),
  )
}

/** Returns the kind of a data source that is neither a claim nor a snapshot. Its populator creates the volume. */
function populatedKindOf({ spec }: PersistentVolumeClaim): string | undefined {
  const source = spec?.dataSourceRef ?? spec?.dataSource
  if (!source) return undefined
  const { apiGroup = '', kind } = source
  const isHandled = (apiGroup === '' && kind === 'PersistentVolumeClaim') || kind === 'VolumeSnapshot'
  return isHandled ? undefined : `${kind}.${apiGroup}`
}

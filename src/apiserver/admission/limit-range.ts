// Applies the namespace's limit ranges to new pods and claims: sets defaults before validation, and rejects requests out
// of bounds after validation. An existing claim is checked again only when its resources change. A request that moves
// towards a min or max is then accepted; a changed limit-to-request ratio must satisfy the range.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { applyClaimDefaults, applyPodDefaults, findClaimViolations, findPodViolations } from '../../api/limits/index.ts'
import { forbidden } from '../../api/status-error.ts'
import type { AnyObject } from '../objects/object-deps.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'
import { limitRangesOf } from './namespace-limits.ts'

export const limitRange: AdmissionPlugin = {
  name: 'LimitRanger',
  mutate(request) {
    const { operation, object } = request
    const plural = limitedPluralOf(request)
    if (!plural || operation !== 'CREATE') return
    for (const range of limitRangesOf(request)) {
      if (plural === 'pods') applyPodDefaults(object, range)
      else applyClaimDefaults(object, range, (name) => isSetByClass(request, name))
    }
  },
  validate(request) {
    const { resource, name, object, oldObject } = request
    const plural = limitedPluralOf(request)
    if (!plural || !object || oldObject?.metadata.deletionTimestamp || (oldObject && !haveResourcesChanged(request)))
      return undefined
    for (const range of limitRangesOf(request)) {
      const violations =
        plural === 'pods'
          ? findPodViolations(object, range)
          : findClaimViolations(object, range, oldObject as PersistentVolumeClaim | undefined)
      if (violations.length === 1) throw forbidden(resource, name, violations[0] as string)
      if (violations.length > 1) throw forbidden(resource, name, `[${violations.join(', ')}]`)
    }
    return undefined
  },
}

function limitedPluralOf({ resource, subresource }: AdmissionRequest): 'pods' | 'persistentvolumeclaims' | undefined {
  const { group, plural } = resource
  if (group !== '' || subresource !== '') return undefined
  return plural === 'pods' || plural === 'persistentvolumeclaims' ? plural : undefined
}

/** A pod's resources are immutable, so only those of a claim can change. */
function haveResourcesChanged({ resource, object, oldObject }: AdmissionRequest): boolean {
  const resourcesOf = ({ spec }: AnyObject): JsonValue => spec?.resources ?? null
  return resource.plural === 'persistentvolumeclaims' && !jsonEquals(resourcesOf(object), resourcesOf(oldObject))
}

/** Whether the claim's VolumeAttributesClass has the parameter; a default must not override it. */
function isSetByClass({ object, find }: AdmissionRequest, name: string): boolean {
  const className = object.spec?.volumeAttributesClassName
  const attributesClass = className ? find(volumeAttributesClassKind, '', className) : undefined
  return Object.hasOwn(attributesClass?.parameters ?? {}, name)
}

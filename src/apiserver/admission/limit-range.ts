// Applies the namespace's limit ranges to new pods and claims: sets defaults before validation, rejects requests that are
// out of bounds after it. An existing claim is checked again when its requests change, not when a range changes, and
// only for values that exceed a bound by more than before.
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
    const limited = limitedKind(request)
    if (!limited || operation !== 'CREATE') return
    for (const range of limitRangesOf(request)) {
      if (limited === 'pods') applyPodDefaults(object, range)
      else applyClaimDefaults(object, range, (name) => isSetByClass(request, name))
    }
  },
  validate(request) {
    const { resource, name, object, old } = request
    const limited = limitedKind(request)
    if (!limited || !object || old?.metadata.deletionTimestamp || (old && !requestsChanged(request))) return undefined
    for (const range of limitRangesOf(request)) {
      const violations =
        limited === 'pods'
          ? findPodViolations(object, range)
          : findClaimViolations(object, range, old as PersistentVolumeClaim | undefined)
      if (violations.length === 1) throw forbidden(resource, name, violations[0] as string)
      if (violations.length > 1) throw forbidden(resource, name, `[${violations.join(', ')}]`)
    }
    return undefined
  },
}

function limitedKind({ resource, subresource }: AdmissionRequest): 'pods' | 'persistentvolumeclaims' | undefined {
  const { group, plural } = resource
  if (group !== '' || subresource !== '') return undefined
  return plural === 'pods' || plural === 'persistentvolumeclaims' ? plural : undefined
}

/** Only a claim's can: the requests of a pod are immutable. */
function requestsChanged({ resource, object, old }: AdmissionRequest): boolean {
  const requests = ({ spec }: AnyObject): JsonValue => spec?.resources ?? null
  return resource.plural === 'persistentvolumeclaims' && !jsonEquals(requests(object), requests(old))
}

/** A default must not contradict a parameter of the claim's VolumeAttributesClass. */
function isSetByClass({ object, find }: AdmissionRequest, name: string): boolean {
  const className = object.spec?.volumeAttributesClassName
  const attributesClass = className ? find(volumeAttributesClassKind, '', className) : undefined
  return Object.hasOwn(attributesClass?.parameters ?? {}, name)
}

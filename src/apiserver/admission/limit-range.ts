// Holds new pods and claims to the namespace's limit ranges: fills in defaults before they are validated, refuses what is
// out of bounds after. A claim that exists is judged again when it asks for something else, not when a range changes, and
// only for what goes further than before.
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { applyClaimDefaults, applyPodDefaults, claimViolations, podViolations } from '../../api/limits/index.ts'
import { forbidden } from '../../api/status-error.ts'
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
    if (!limited || !object || old?.metadata.deletionTimestamp || (old && !asksAnew(request))) return undefined
    for (const range of limitRangesOf(request)) {
      const violations =
        limited === 'pods'
          ? podViolations(object, range)
          : claimViolations(object, range, old as PersistentVolumeClaim | undefined)
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

/** What a pod asks for is settled when it is created. */
function asksAnew({ resource, object, old }: AdmissionRequest): boolean {
  const asked = ({ spec }: any): JsonValue => spec?.resources ?? null
  return resource.plural === 'persistentvolumeclaims' && !jsonEquals(asked(object), asked(old))
}

/** A default beside a value of the class would be a contradiction that the claim's owner did not write. */
function isSetByClass({ object, find }: AdmissionRequest, name: string): boolean {
  const className = object.spec?.volumeAttributesClassName
  const attributesClass = className ? find('storage.k8s.io', 'volumeattributesclasses', '', className) : undefined
  return Object.hasOwn(attributesClass?.parameters ?? {}, name)
}

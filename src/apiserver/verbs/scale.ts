// The subresource `scale`, which changes the number of replicas of a stateful set in the form of a Scale: decodes the body of
// a PUT and merges it into the stored set. readScale (api/kinds/stateful-set/scale.ts) converts a set to a Scale.
import { SCALE_TYPE, type Scale, scale } from '../../api/kinds/stateful-set/scale.ts'
import { badRequest } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import { checkKind, decodeAs, type RequestBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import type { AnyObject } from '../objects/object-deps.ts'

export const isScale = ({ subresource }: { readonly subresource: string }): boolean => subresource === 'scale'

/** Decodes the body of a PUT. */
export function decodeScale(body: RequestBody, validation: FieldValidation) {
  checkKind(body, SCALE_TYPE.kind)
  const { apiVersion } = body
  if (apiVersion && apiVersion !== SCALE_TYPE.apiVersion) {
    throw badRequest(
      `the API version in the data (${String(apiVersion).slice(0, 100)}) does not match the expected API version (${SCALE_TYPE.apiVersion})`,
    )
  }
  return decodeAs<Scale>(body, scale, 'Scale in version "v1"', validation)
}

/** Returns the stored set with the requested number of replicas. */
export function mergeScale(requestedScale: AnyObject, old: AnyObject): AnyObject {
  const newObject = clone({ ...old, metadata: { ...old.metadata, managedFields: undefined } })
  newObject.spec = { ...newObject.spec, replicas: requestedScale.spec?.replicas ?? 0 }
  return newObject
}

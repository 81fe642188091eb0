// Applies a JSON Merge Patch (RFC 7396): sets the fields of the patch and removes those that are null.
// Pure: the document and the patch are not modified; the result shares unchanged parts with them.
import { isRecord } from '../decode.ts'
import { getOwnProperty, type JsonValue, setOwnProperty } from '../json-value.ts'

export function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isRecord(patch)) return patch
  const mergedObject: { [key: string]: JsonValue } = isRecord(document) ? { ...document } : {}
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete mergedObject[key]
    else setOwnProperty(mergedObject, key, applyMergePatch(getOwnProperty(mergedObject, key), change))
  }
  return mergedObject
}

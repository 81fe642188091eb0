// Applies a JSON Merge Patch (RFC 7396): sets the fields of the patch and removes those that are null.
// Pure: the document and the patch are not modified; the result shares unchanged parts with them.
import { getOwnProperty, isJsonObject, type JsonValue, setOwnProperty } from '../json-value.ts'

export function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch
  const mergedObject: { [key: string]: JsonValue } = isJsonObject(document) ? { ...document } : {}
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete mergedObject[key]
    else setOwnProperty(mergedObject, key, applyMergePatch(getOwnProperty(mergedObject, key), change))
  }
  return mergedObject
}

// JSON Merge Patch (RFC 7386): a document with the changes filled in, null for what should go.
// Pure: the document and the patch are left as they were; what the result did not change it shares with them.
import { isJsonObject, type JsonValue, ownValue, setOwn } from '../json-value.ts'

export function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch
  const merged: { [key: string]: JsonValue } = isJsonObject(document) ? { ...document } : {}
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete merged[key]
    else setOwn(merged, key, applyMergePatch(ownValue(merged, key), change))
  }
  return merged
}

// Declares ConfigMap: configuration data as text or bytes, by key.
import { ageColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { configMapKeyProblems, dns1123SubdomainProblems } from '../../names.ts'
import { base64ByteLength, CONTENT_BYTES_MAX, validateImmutableContent } from '../shared/content-rules.ts'
import { type ConfigMap, configMap } from './config-map-schema.ts'

export const configMapKind = defineKind<ConfigMap>({
  group: '',
  versions: ['v1'],
  kind: 'ConfigMap',
  plural: 'configmaps',
  singular: 'configmap',
  shortNames: ['cm'],
  namespaced: true,
  type: configMap,

  nameErrors: dns1123SubdomainProblems,
  validate({ data = {}, binaryData = {} }, errors) {
    let totalBytes = 0
    for (const [key, text] of Object.entries(data)) {
      errors.invalidAll(`data[${key}]`, key, configMapKeyProblems(key))
      if (Object.hasOwn(binaryData, key)) {
        errors.invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')
      }
      totalBytes += Buffer.byteLength(text)
    }
    for (const [key, base64] of Object.entries(binaryData)) {
      errors.invalidAll(`binaryData[${key}]`, key, configMapKeyProblems(key))
      totalBytes += base64ByteLength(base64)
    }
    if (totalBytes > CONTENT_BYTES_MAX) errors.tooLong('', CONTENT_BYTES_MAX)
  },
  validateUpdate: (next, old, errors) =>
    validateImmutableContent({ next, old, contentFields: ['data', 'binaryData'], errors }),

  columns: [
    nameColumn,
    {
      name: 'Data',
      type: 'string',
      doc: 'Number of keys.',
      cell: ({ data = {}, binaryData = {} }) => Object.keys(data).length + Object.keys(binaryData).length,
    },
    ageColumn,
  ],
  deleteReturnsObject: false,
})

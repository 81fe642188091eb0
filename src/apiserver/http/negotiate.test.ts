import { describe, expect, it } from 'vitest'
import { negotiate } from './negotiate.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const PARTIAL = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

describe('negotiate', () => {
  it.each([
    ['no header', undefined, 'object json'],
    ['any type', '*/*', 'object json'],
    ['JSON', 'application/json', 'object json'],
    ['JSON with a charset', 'application/json; charset=utf-8', 'object json'],
    ['YAML', 'application/yaml', 'object yaml'],
    [
      'the header of kubectl get',
      `${TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json`,
      'table json v1',
    ],
    ['the v1beta1 table first', `application/json;as=Table;v=v1beta1;g=meta.k8s.io,${TABLE}`, 'table json v1beta1'],
    ['parameters in any order', 'application/json;g=meta.k8s.io;v=v1;as=Table', 'table json v1'],
    [
      'the header of metadata clients',
      `${PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,${PARTIAL},application/json`,
      'partial protobuf v1',
    ],
    ['protobuf or JSON', `${PROTOBUF},application/json`, 'object protobuf'],
    ['only protobuf', PROTOBUF, 'object protobuf'],
    ['JSON or protobuf', `application/json,${PROTOBUF}`, 'object json'],
    ['a table, which has no protobuf message', `${PROTOBUF};as=Table;v=v1;g=meta.k8s.io,${TABLE}`, 'table json v1'],
    ['an unknown form or JSON', 'application/json;as=Unknown;v=v1;g=meta.k8s.io,application/json', 'object json'],
    [
      'a table of another group or JSON',
      'application/json;as=Table;v=v1;g=example.com,application/json',
      'object json',
    ],
    [
      'a table of another version or JSON',
      'application/json;as=Table;v=v2;g=meta.k8s.io,application/json',
      'object json',
    ],
    ['the header of browsers', 'text/html,application/xhtml+xml,*/*;q=0.8', 'object json'],
  ])('accepts %s', (_, accept, expected) => {
    const { form, media, metaVersion } = negotiate(accept, ['table', 'partial'])
    expect(form === 'object' ? `${form} ${media}` : `${form} ${media} ${metaVersion}`).toBe(expected)
  })

  it.each([
    ['a table in protobuf', `${PROTOBUF};as=Table;v=v1;g=meta.k8s.io`],
    ['text', 'text/plain'],
    ['the list form for a single object', 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'],
    ['a table in YAML', 'application/yaml;as=Table;v=v1;g=meta.k8s.io'],
  ])('rejects %s with 406', (_, accept) => {
    expect(() => negotiate(accept, ['table', 'partial'])).toThrow(
      expect.objectContaining({ code: 406, reason: 'NotAcceptable' }),
    )
  })
})

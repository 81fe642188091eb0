import { describe, expect, it } from 'vitest'
import { negotiate } from './negotiate.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const PARTIAL = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

describe('negotiate', () => {
  it.each([
    ['no header', undefined, 'object json'],
    ['anything', '*/*', 'object json'],
    ['JSON', 'application/json', 'object json'],
    ['JSON with a charset', 'application/json; charset=utf-8', 'object json'],
    ['YAML', 'application/yaml', 'object yaml'],
    [
      'what kubectl get sends',
      `${TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json`,
      'table json v1',
    ],
    ['the older table first', `application/json;as=Table;v=v1beta1;g=meta.k8s.io,${TABLE}`, 'table json v1beta1'],
    ['parameters in any order', 'application/json;g=meta.k8s.io;v=v1;as=Table', 'table json v1'],
    [
      'what metadata clients send',
      `${PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,${PARTIAL},application/json`,
      'partial json v1',
    ],
    ['protobuf or JSON', `${PROTOBUF},application/json`, 'object json'],
    ['protobuf or anything', `${PROTOBUF}, */*`, 'object json'],
    ['an unknown form, or JSON', 'application/json;as=Poem;v=v1;g=meta.k8s.io,application/json', 'object json'],
    [
      'a table of another group, or JSON',
      'application/json;as=Table;v=v1;g=example.com,application/json',
      'object json',
    ],
    [
      'a table of another version, or JSON',
      'application/json;as=Table;v=v2;g=meta.k8s.io,application/json',
      'object json',
    ],
    ['what browsers send', 'text/html,application/xhtml+xml,*/*;q=0.8', 'object json'],
  ])('%s', (_, accept, expected) => {
    const { form, media, metaVersion } = negotiate(accept, ['table', 'partial'])
    expect(form === 'object' ? `${form} ${media}` : `${form} ${media} ${metaVersion}`).toBe(expected)
  })

  it.each([
    ['protobuf alone', PROTOBUF],
    ['text', 'text/plain'],
    ['a list form where one object is asked for', 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'],
    ['a table in YAML', 'application/yaml;as=Table;v=v1;g=meta.k8s.io'],
  ])('%s is rejected with 406', (_, accept) => {
    expect(() => negotiate(accept, ['table', 'partial'])).toThrow(
      expect.objectContaining({ code: 406, reason: 'NotAcceptable' }),
    )
  })
})

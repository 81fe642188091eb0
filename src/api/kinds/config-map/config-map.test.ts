import { describe, expect, it } from 'vitest'
import { cellsOf, tryCreate, tryUpdate } from '../kind.fixture.ts'
import { configMapKind } from './config-map.ts'

const aConfigMap = (fields: object) => ({ metadata: { name: 'settings', namespace: 'shop' }, ...fields })

describe('ConfigMap', () => {
  it('accepts text and bytes with valid keys', () => {
    const { object, errors } = tryCreate(
      configMapKind,
      aConfigMap({ data: { 'a.conf': 'x' }, binaryData: { b: 'AA==' } }),
    )
    expect(errors).toEqual([])
    expect(cellsOf(configMapKind, object)).toMatchObject({ Name: 'settings', Data: 2 })
  })

  it.each([
    [{ data: { '..': 'x' } }, 'data[..]: Invalid value: "..": must not be \'..\''],
    [{ binaryData: { '..x': 'AA==' } }, 'binaryData[..x]: Invalid value: "..x": must not start with \'..\''],
    [
      { data: { a: 'x' }, binaryData: { a: 'AA==' } },
      'data[a]: Invalid value: "a": duplicate of key present in binaryData',
    ],
    [{ data: { a: 'é'.repeat(524_289) } }, ': Too long: may not be more than 1048576 bytes'],
  ])('rejects %j', (fields, message) => {
    expect(tryCreate(configMapKind, aConfigMap(fields)).errors).toEqual([message])
  })

  it('rejects changes to an immutable ConfigMap', () => {
    const { object } = tryCreate(
      configMapKind,
      aConfigMap({ immutable: true, data: { a: 'x' }, binaryData: { b: 'AA==' } }),
    )
    expect(tryUpdate(configMapKind, object, aConfigMap({ data: { a: 'y' } })).errors).toEqual([
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
      'binaryData: Forbidden: field is immutable when `immutable` is set',
    ])
  })

  it('accepts an update that changes the content and makes it immutable', () => {
    const { object } = tryCreate(configMapKind, aConfigMap({ data: { a: 'x' } }))
    expect(tryUpdate(configMapKind, object, aConfigMap({ immutable: true, data: { a: 'y' } })).errors).toEqual([])
  })
})

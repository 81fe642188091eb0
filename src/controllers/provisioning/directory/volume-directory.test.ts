import { dirname, normalize } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { directoryOf, volumeNameAt } from './volume-directory.ts'

const ROOT = '/srv/volumes'

describe('directoryOf and volumeNameAt', () => {
  it('PROV-20 map a volume to a directory directly below the root, and back', () => {
    expect(directoryOf(ROOT, 'pvc-1')).toBe('/srv/volumes/pvc-1')
    expect(volumeNameAt(ROOT, '/srv/volumes/pvc-1')).toBe('pvc-1')
  })

  const INVALID_PATHS = [
    '/srv/volumes/../etc',
    '/srv/volumes/x/../../y',
    '/srv/volumes/..',
    '/srv/volumes/.',
    '/srv/volumes/',
    '/srv/volumes',
    '/srv/volumes//pvc-1',
    '/srv/volumes/pvc-1/',
    '/srv/volumes/pvc-1/inside',
    '/srv/volumes2/pvc-1',
    '/srv/volumes/.deleting-pvc-1',
    '/srv/volumes/.archived-pvc-1',
    '/srv/volumes/PVC-1',
    '/srv/volumes/pvc-1\0',
    'pvc-1',
    '/etc',
    '/',
    '',
  ]
  for (const path of INVALID_PATHS) {
    it(`PROV-20 reject ${JSON.stringify(path)} as a volume's directory`, () => {
      expect(volumeNameAt(ROOT, path)).toBeUndefined()
    })
  }

  const segment = fc.constantFrom(
    '..',
    '.',
    '',
    'pvc-1',
    '.deleting-x',
    'etc',
    '\0',
    '~',
    'A',
    '*',
    '-',
    'a'.repeat(300),
  )
  const anyPath = fc
    .oneof(
      fc.string(),
      fc.array(fc.oneof(segment, fc.string()), { maxLength: 6 }).map((segments) => segments.join('/')),
    )
    .chain((tail) => fc.constantFrom(tail, `/${tail}`, `${ROOT}/${tail}`, `${ROOT}${tail}`))

  it('PROV-20 accept only the canonical path directly below the root', () => {
    fc.assert(
      fc.property(anyPath, (candidate) => {
        const name = volumeNameAt(ROOT, candidate)
        if (name === undefined) return
        expect(candidate).toBe(`${ROOT}/${name}`)
        expect(normalize(candidate)).toBe(candidate)
        expect(dirname(candidate)).toBe(ROOT)
        expect(directoryOf(ROOT, name)).toBe(candidate)
      }),
      { numRuns: 2_000 },
    )
  })

  it('map every accepted name to a path and back', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          segment,
          fc.string(),
          fc.uuid().map((uid) => `pvc-${uid}`),
        ),
        (name) => {
          const directory = directoryOf(ROOT, name)
          if (directory === undefined) return
          expect(dirname(directory)).toBe(ROOT)
          expect(volumeNameAt(ROOT, directory)).toBe(name)
        },
      ),
      { numRuns: 2_000 },
    )
    expect(directoryOf(ROOT, 'pvc-0c1f7a52-6f0e-4f3e-9f5b-0d9d6a5c8b11')).toBeDefined()
  })
})

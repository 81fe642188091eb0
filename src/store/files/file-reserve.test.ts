import { closeSync, fstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FileReserve } from './file-reserve.ts'

const KIB = 1024

let dir: string
let fd: number
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-reserve-'))
})
afterEach(async () => {
  closeSync(fd)
  await rm(dir, { recursive: true, force: true })
})

/** Creates a file of `kib` that is completely used. */
function setUp({ kib, flags = 'r+' }: { kib: number; flags?: 'r' | 'r+' }) {
  const path = join(dir, 'file')
  const content = Buffer.alloc(kib * KIB, 'x')
  const newFile = openSync(path, 'w')
  writeSync(newFile, content)
  closeSync(newFile)
  fd = openSync(path, flags)
  const state = { usedBytes: (kib * KIB) as number | undefined, looks: 0 }
  const usedBytes = () => {
    state.looks++
    return state.usedBytes
  }
  return { path, content, state, reserve: new FileReserve({ fd, usedBytes }), size: () => fstatSync(fd).size / KIB }
}

describe('FileReserve', () => {
  it('extends a file by zeros, and leaves its bytes as they are', () => {
    const { path, content, reserve } = setUp({ kib: 100 })
    reserve.prepare(1)
    expect(readFileSync(path)).toEqual(Buffer.concat([content, Buffer.alloc(64 * KIB)]))
  })

  it('extends a file again when less than 32 KiB are free', () => {
    const { state, reserve, size } = setUp({ kib: 100 })
    reserve.prepare(40 * KIB)
    expect(size()).toBe(164)
    state.usedBytes = 132 * KIB
    reserve.prepare(40 * KIB)
    expect(size()).toBe(164)
    state.usedBytes = 133 * KIB
    reserve.prepare(40 * KIB)
    expect(size()).toBe(228)
  })

  it('looks at the used bytes only when commits may have used up the reserve', () => {
    const { state, reserve } = setUp({ kib: 100 })
    for (let commit = 0; commit < 7; commit++) reserve.prepare(10 * KIB)
    expect(state.looks).toBe(1)
    reserve.prepare(10 * KIB)
    expect(state.looks).toBe(2)
  })

  it.each([
    [1_000, 250],
    [10_000, 512],
  ])('extends a file of %d KiB by %d KiB', (kib, reserveKib) => {
    const { reserve, size } = setUp({ kib })
    reserve.prepare(1)
    expect(size()).toBe(kib + reserveKib)
  })

  it('leaves a file as it is if it cannot be written, and does not try again', () => {
    const { state, reserve, size } = setUp({ kib: 100, flags: 'r' })
    for (let commit = 0; commit < 3; commit++) reserve.prepare(100 * KIB)
    expect(size()).toBe(100)
    expect(state.looks).toBe(1)
  })

  it('leaves a file as it is if its meta pages cannot be read', () => {
    const { state, reserve, size } = setUp({ kib: 100 })
    state.usedBytes = undefined
    reserve.prepare(1)
    expect(size()).toBe(100)
  })
})

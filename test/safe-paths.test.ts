// Lists the functions of node:fs and the programs that the node agent and the driver use, with the reason why no pod can
// direct them to another file. A pod can replace names in its volumes at any time, so operations there belong to base/trees,
// which works on open files. A new use fails this test until it is listed; docs/explanation/nodes.md has the summary.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface PathUse {
  /** Functions of node:fs and programs that the file uses, sorted. */
  readonly calls: readonly string[]
  readonly reason: string
}

const IN_POOL = 'names in directories of the pool, which pods cannot write to'
const IN_ROOT = 'names in directories of the agent, which pods cannot write to'
const IN_TARGETS = 'target paths of the caller, in directories that pods cannot write to; --target-root restricts them'

const PATH_USES: Readonly<Record<string, PathUse>> = {
  'src/driver/backends/directory-backend.ts': {
    calls: ['mkdir', 'readlink', 'rename', 'rmdir', 'stat', 'symlink', 'unlink'],
    reason: `${IN_POOL}, and ${IN_TARGETS}; contents are copied, measured and removed in base/trees and host`,
  },
  'src/driver/backends/loop-node.ts': { calls: ['mkdir'], reason: IN_TARGETS },
  'src/driver/backends/mount-targets.ts': {
    calls: ['lstat', 'mkdir', 'open', 'readdir', 'rm', 'rmdir', 'stat'],
    reason: `${IN_TARGETS}; only empty files and directories are removed`,
  },
  'src/driver/driver.ts': { calls: ['mkdir', 'realpath'], reason: `${IN_POOL}, and the directory of the socket` },
  'src/driver/limits/stale-limits.ts': { calls: ['readFile'], reason: 'files of the kernel in /sys' },
  'src/driver/node/publish-volume.ts': { calls: ['lstat'], reason: IN_TARGETS },
  'src/driver/pool/pool-layout.ts': { calls: ['lstat', 'readdir'], reason: IN_POOL },
  'src/driver/pool/pool-lock.ts': { calls: ['stat'], reason: IN_POOL },
  'src/driver/pool/record-files.ts': {
    calls: ['mkdir', 'open', 'readFile', 'readdir', 'rename', 'rm'],
    reason: IN_POOL,
  },
  'src/driver/pool/disk-reserve.ts': { calls: ['open', 'rm', 'statfs'], reason: IN_POOL },
  'src/nodeagent/commands/cgroup.ts': {
    calls: ['mkdir', 'readFile', 'readdir', 'rmdir', 'writeFile'],
    reason: 'directories of the kernel in the cgroup file system',
  },
  'src/nodeagent/commands/container-input.ts': {
    calls: ['open', 'openSync', 'readlink'],
    reason: `${IN_ROOT}: named pipes; and the terminal of a process in /proc`,
  },
  'src/nodeagent/commands/exec-in-container.ts': {
    calls: ['readFile', 'stat'],
    reason: 'files of the kernel in /proc, to compare the root of a process and read its environment',
  },
  'src/nodeagent/commands/logs/log-capture.ts': {
    calls: ['open', 'openSync', 'rm'],
    reason: `${IN_ROOT}: named pipes`,
  },
  'src/nodeagent/commands/logs/log-writer.ts': { calls: ['open', 'rename', 'stat'], reason: IN_ROOT },
  'src/nodeagent/commands/logs/read-log.ts': { calls: ['open'], reason: IN_ROOT },
  'src/nodeagent/commands/process-session.ts': {
    calls: ['readFileSync', 'readdirSync'],
    reason: 'files of the kernel in /proc',
  },
  'src/nodeagent/commands/start-container.ts': {
    calls: ['realpath'],
    reason: 'a program of the node in the search path of the agent',
  },
  'src/nodeagent/commands/termination-message.ts': {
    calls: ['open'],
    reason: `${IN_ROOT}; the container can change the content of the file, and a bounded part of it is read`,
  },
  'src/nodeagent/commands/tools.ts': {
    calls: ['accessSync'],
    reason: 'programs of the node in the search path of the agent',
  },
  'src/nodeagent/disk/fs-group.ts': {
    calls: ['chmod', 'chown', 'open'],
    reason: 'the target path of the driver; everything below it through open descriptors',
  },
  'src/nodeagent/disk/host-disk.ts': {
    calls: [
      ...[
        'chmod',
        'chown',
        'lstat',
        'mkdir',
        'mount',
        'mount',
        'readdir',
        'readlink',
        'realpath',
        'rename',
        'rm',
        'rmdir',
        'stat',
      ],
      ...['symlink', 'unlink', 'writeFile'],
    ],
    reason: `${IN_ROOT}; subpaths and hostPath volumes are opened in sub-path.ts, trees are removed in base/trees`,
  },
  'src/nodeagent/disk/sub-path.ts': {
    calls: ['mkdir', 'open', 'readlink', 'realpath'],
    reason: 'the path of the volume; every part below it through open descriptors, without following links out of it',
  },
  'src/nodeagent/registration/plugin-directory.ts': {
    calls: ['lstat', 'mkdir', 'readdir', 'watch'],
    reason: 'names in the directory of registration sockets, which only drivers write to',
  },
  'src/nodeagent/root-lock.ts': { calls: ['stat'], reason: IN_ROOT },
  'src/nodeagent/start-agent.ts': { calls: ['mkdir', 'realpath'], reason: 'the root of the agent' },
  'src/nodeagent/stats/io-rates.ts': {
    calls: ['stat'],
    reason: `${IN_ROOT}; it reads the device number of a mount point`,
  },
}

const files = ['src/nodeagent', 'src/driver'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((file) => file.endsWith('.ts') && !/\.(test|fixture|contract)\.ts$/.test(file)),
)
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** Returns the functions of node:fs that the file imports, and the programs that it runs. */
function listCalls(text: string): string[] {
  const imports = [...text.matchAll(/import (?!type)([^;']*?) from 'node:fs(?:\/promises)?'/g)].flatMap(
    ([, names = '']) => names.replace(/[{}]/g, '').split(','),
  )
  const functions = imports
    .map((name) => name.trim())
    .filter((name) => /^(?!type )\S/.test(name) && name !== 'constants')
  const programs = [...text.matchAll(/\b(?:run|spawn|execFile|exec)\(\s*'([^']+)'/g)].map(([, program = '']) => program)
  return [...functions, ...programs].sort()
}

describe('the node agent and the driver', () => {
  it('use the listed functions of node:fs and programs, and no others', () => {
    const callsByFile = Object.fromEntries(
      files.map((file) => [file, listCalls(textOf(file))] as const).filter(([, calls]) => calls.length > 0),
    )
    expect(callsByFile).toEqual(Object.fromEntries(Object.entries(PATH_USES).map(([file, { calls }]) => [file, calls])))
  })

  it('do not remove, copy or list recursively with node:fs, which follows names that a pod can replace', () => {
    const recursiveFiles = files.filter((file) =>
      /\b(?:rm|rmdir|cp|readdir|opendir)(?:Sync)?\((?:[^()]|\([^()]*\))*recursive: true/.test(textOf(file)),
    )
    expect(recursiveFiles).toEqual([])
  })
})

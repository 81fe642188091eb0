import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { expandCommand, isPerNode, nameCommands } from './driver-source.ts'

describe('expandCommand', () => {
  const values = { socket: '/data/csi.sock', node: 'node-1', dir: '/data/dir' }

  it('replaces the three placeholders, and keeps other braces', () => {
    const command = `d --endpoint unix://{socket} --nodeid={node} --pools '[{"path":"{dir}"}]' {other}`
    expect(expandCommand(command, values)).toBe(
      `d --endpoint unix:///data/csi.sock --nodeid=node-1 --pools '[{"path":"/data/dir"}]' {other}`,
    )
  })

  it.each(['/my data/csi.sock', "/it's/$HOME/`id`/csi.sock", '/a;b/*.sock'])('quotes %s for the shell', (socket) => {
    const command = expandCommand('printf %s {socket}', { ...values, socket })
    expect(execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' })).toBe(socket)
  })
})

it('isPerNode returns true for a source with {node}', () => {
  expect(isPerNode({ is: 'command', command: 'd --nodeid {node}' })).toBe(true)
  expect(isPerNode({ is: 'command', command: 'd --endpoint {socket}' })).toBe(false)
  expect(isPerNode({ is: 'socket', path: '/run/{node}.sock' })).toBe(true)
})

it.each([
  [['/opt/bin/hostpathplugin --endpoint {socket}'], ['hostpathplugin']],
  [['env CSI_NODE_ID={node} node /x/democratic-csi --log-level info'], ['democratic-csi']],
  [['DEBUG=1 python3 rawfile.py csi-driver'], ['rawfile']],
  [['cd /src && go run ./cmd/My_Driver.v2'], ['cd']],
  [
    ['a --x', 'b', 'a --y'],
    ['a', 'b', 'a-2'],
  ],
  [['"$DRIVER" {socket}'], ['driver']],
  [['{socket}'], ['driver']],
  [[`/opt/${'long'.repeat(20)}`], ['longlonglonglonglonglong']],
])('nameCommands returns for the commands %j the names %j', (commands, names) => {
  expect(nameCommands(commands)).toEqual(names)
})

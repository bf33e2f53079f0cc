/**
 * What every store must do, whatever table it stands on: each write with its condition, refused in each part, repeated, and
 * raced for by many; each read. Takes a way to open a table.
 */
import { describe } from 'vitest'
import type { TestTable } from '../support/tables.ts'
import { approvalsContract } from './contract/approvals.ts'
import { claimContract } from './contract/claim.ts'
import { delegationContract } from './contract/delegation.ts'
import { grantsContract } from './contract/grants.ts'
import { limitsContract } from './contract/limits.ts'
import { listsContract } from './contract/lists.ts'
import { logContract } from './contract/log.ts'
import { moneyContract } from './contract/money.ts'
import { placesContract } from './contract/places.ts'
import { runContract } from './contract/run.ts'
import { sessionContract } from './contract/session.ts'
import { usageContract } from './contract/usage.ts'

export function storeContract(open: () => Promise<TestTable>): void {
  describe('runs', () => runContract(open))
  describe('claims', () => claimContract(open))
  describe('sessions', () => sessionContract(open))
  describe('delegation, money and corrections', () => delegationContract(open))
  describe('money that is short', () => moneyContract(open))
  describe('the log', () => logContract(open))
  describe('places', () => placesContract(open))
  describe('approvals', () => approvalsContract(open))
  describe('limits that many share', () => limitsContract(open))
  describe('what a run is granted', () => grantsContract(open))
  describe('lists', () => listsContract(open))
  describe('usage of a day', () => usageContract(open))
}

// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

// Status is the first field of a response; zero is success and every other value is an error without a body.
type Status uint32

// The statuses that the broker answers by itself or that faults are commonly made of.
const (
	StatusOK                       Status = 0
	StatusError                    Status = 1
	StatusInvalidCommand           Status = 3
	StatusInvalidFormat            Status = 4
	StatusFeatureUnavailable       Status = 5
	StatusDisconnected             Status = 8
	StatusResourceNotFound         Status = 20
	StatusStaleClient              Status = 30
	StatusUnauthenticated          Status = 40
	StatusUnauthorized             Status = 41
	StatusInvalidCredentials       Status = 42
	StatusInvalidUsername          Status = 43
	StatusInvalidPassword          Status = 44
	StatusUserAlreadyExists        Status = 46
	StatusUserInactive             Status = 47
	StatusCannotDeleteUser         Status = 48
	StatusCannotChangePermissions  Status = 49
	StatusInvalidAccessTokenName   Status = 50
	StatusAccessTokenAlreadyExists Status = 51
	StatusAccessTokenExpired       Status = 54
	StatusClientNotFound           Status = 100
	StatusInvalidClientID          Status = 101
	StatusStreamNotFound           Status = 1009
	StatusStreamNameExists         Status = 1012
	StatusInvalidTopicSize         Status = 1019
	StatusTopicNotFound            Status = 2010
	StatusTopicNameExists          Status = 2013
	StatusTooManyPartitions        Status = 2015
	StatusInvalidPartitionsCount   Status = 2019
	StatusPartitionNotFound        Status = 3007
	StatusConsumerOffsetNotFound   Status = 3021
	StatusConsumerNotResolved      Status = 3022
	StatusInvalidMessagesCount     Status = 4009
	StatusHeadersTooBig            Status = 4017
	StatusPayloadTooBig            Status = 4022
	StatusInvalidPayloadLength     Status = 4025
	StatusIndexOffsetNotZero       Status = 4031
	StatusIndexTimestampNotZero    Status = 4032
	StatusMissingIndex             Status = 4033
	StatusMessagesSizeMismatch     Status = 4036
	StatusInvalidOffset            Status = 4100
	StatusConsumerGroupNotFound    Status = 5000
	StatusConsumerGroupNameExists  Status = 5004
	StatusInvalidConsumerGroupName Status = 5005
	StatusConsumerGroupNotJoined   Status = 5006
)

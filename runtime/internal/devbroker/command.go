// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

// Command is the code of a request. A code without a constant here is answered with StatusInvalidCommand.
type Command uint32

// The commands that the broker serves.
const (
	Ping                 Command = 1
	GetStats             Command = 10
	GetClusterMetadata   Command = 12
	GetMe                Command = 20
	GetClient            Command = 21
	GetClients           Command = 22
	GetUser              Command = 31
	GetUsers             Command = 32
	CreateUser           Command = 33
	DeleteUser           Command = 34
	UpdateUser           Command = 35
	UpdatePermissions    Command = 36
	ChangePassword       Command = 37
	LoginUser            Command = 38
	LogoutUser           Command = 39
	GetAccessTokens      Command = 41
	CreateAccessToken    Command = 42
	DeleteAccessToken    Command = 43
	LoginWithAccessToken Command = 44
	PollMessages         Command = 100
	SendMessages         Command = 101
	FlushUnsavedBuffer   Command = 102
	GetConsumerOffset    Command = 120
	StoreConsumerOffset  Command = 121
	DeleteConsumerOffset Command = 122
	GetStream            Command = 200
	GetStreams           Command = 201
	CreateStream         Command = 202
	DeleteStream         Command = 203
	UpdateStream         Command = 204
	PurgeStream          Command = 205
	GetTopic             Command = 300
	GetTopics            Command = 301
	CreateTopic          Command = 302
	DeleteTopic          Command = 303
	UpdateTopic          Command = 304
	PurgeTopic           Command = 305
	CreatePartitions     Command = 402
	DeletePartitions     Command = 403
	DeleteSegments       Command = 503
	GetConsumerGroup     Command = 600
	GetConsumerGroups    Command = 601
	CreateConsumerGroup  Command = 602
	DeleteConsumerGroup  Command = 603
	JoinConsumerGroup    Command = 604
	LeaveConsumerGroup   Command = 605
)

// command says how one request is served.
type command struct {
	serve func(*session, *decoder, *answer) Status
	// open commands need no login.
	open bool
}

// commands holds every command but SendMessages, which is read in stages (see conn.readSend).
var commands = map[Command]command{
	Ping:                 {serve: (*session).ping, open: true},
	GetStats:             {serve: (*session).getStats},
	GetClusterMetadata:   {serve: (*session).getClusterMetadata},
	GetMe:                {serve: (*session).getMe},
	GetClient:            {serve: (*session).getClient},
	GetClients:           {serve: (*session).getClients},
	GetUser:              {serve: (*session).getUser},
	GetUsers:             {serve: (*session).getUsers},
	CreateUser:           {serve: (*session).createUser},
	DeleteUser:           {serve: (*session).deleteUser},
	UpdateUser:           {serve: (*session).updateUser},
	UpdatePermissions:    {serve: (*session).updatePermissions},
	ChangePassword:       {serve: (*session).changePassword},
	LoginUser:            {serve: (*session).loginUser, open: true},
	LogoutUser:           {serve: (*session).logoutUser},
	GetAccessTokens:      {serve: (*session).getAccessTokens},
	CreateAccessToken:    {serve: (*session).createAccessToken},
	DeleteAccessToken:    {serve: (*session).deleteAccessToken},
	LoginWithAccessToken: {serve: (*session).loginWithAccessToken, open: true},
	PollMessages:         {serve: (*session).pollMessages},
	FlushUnsavedBuffer:   {serve: (*session).flushUnsavedBuffer},
	GetConsumerOffset:    {serve: (*session).getConsumerOffset},
	StoreConsumerOffset:  {serve: (*session).storeConsumerOffset},
	DeleteConsumerOffset: {serve: (*session).deleteConsumerOffset},
	GetStream:            {serve: (*session).getStream},
	GetStreams:           {serve: (*session).getStreams},
	CreateStream:         {serve: (*session).createStream},
	DeleteStream:         {serve: (*session).deleteStream},
	UpdateStream:         {serve: (*session).updateStream},
	PurgeStream:          {serve: (*session).purgeStream},
	GetTopic:             {serve: (*session).getTopic},
	GetTopics:            {serve: (*session).getTopics},
	CreateTopic:          {serve: (*session).createTopic},
	DeleteTopic:          {serve: (*session).deleteTopic},
	UpdateTopic:          {serve: (*session).updateTopic},
	PurgeTopic:           {serve: (*session).purgeTopic},
	CreatePartitions:     {serve: (*session).createPartitions},
	DeletePartitions:     {serve: (*session).deletePartitions},
	DeleteSegments:       {serve: (*session).deleteSegments},
	GetConsumerGroup:     {serve: (*session).getConsumerGroup},
	GetConsumerGroups:    {serve: (*session).getConsumerGroups},
	CreateConsumerGroup:  {serve: (*session).createConsumerGroup},
	DeleteConsumerGroup:  {serve: (*session).deleteConsumerGroup},
	JoinConsumerGroup:    {serve: (*session).joinConsumerGroup},
	LeaveConsumerGroup:   {serve: (*session).leaveConsumerGroup},
}
